"""A coordinator that loads a compacted log has the state of one that loads the whole log."""

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st
from tests.unit.coordination.groups.consumer.consumer_group_shard import (
    GROUP,
    ConsumerGroupShard,
    FakeMember,
)

from tidelog.coordination.groups.consumer.group import ConsumerGroup
from tidelog.coordination.runtime.decision import LogRecord
from tidelog.model.errors import ErrorCode

NAMES = "ABC"

steps = st.one_of(
    st.tuples(st.just("join"), st.sampled_from(NAMES), st.sampled_from(("t", "u", "regex"))),
    st.tuples(st.just("static"), st.sampled_from(NAMES), st.just("t")),
    st.tuples(st.just("beat"), st.sampled_from(NAMES), st.just("")),
    st.tuples(st.just("leave"), st.sampled_from(NAMES), st.sampled_from(("", "for a while"))),
    st.tuples(st.just("wait"), st.just(""), st.just("")),
)


def take(shard: ConsumerGroupShard, members: dict[str, FakeMember], step: Any) -> None:
    kind, name, argument = step
    member = members.get(name)
    match kind:
        case "join" | "static" if member is None:
            instance = f"i-{name}" if kind == "static" else None
            member = members[name] = FakeMember(f"{name}{len(members)}", instance_id=instance)
            if argument == "regex":
                shard.join(member, subscribed_topic_regex="[tu]")
            else:
                shard.join(member, argument)
        case "beat" if member is not None:
            if shard.beat(member, report=member.carry_out()).error_code is not ErrorCode.none:
                del members[name]
        case "leave" if member is not None:
            away = argument and member.instance_id is not None
            shard.leave(member, epoch=-2 if away else -1)
            del members[name]
        case "wait":
            shard.wait(20_000)


def compacted(records: list[LogRecord], clean: int, *, drops_tombstones: bool) -> list[LogRecord]:
    """The log after a pass of the cleaner over its first `clean` records."""
    newest = {key: offset for offset, (key, _) in enumerate(records)}
    return [
        (key, value)
        for offset, (key, value) in enumerate(records)
        if offset >= clean or (newest[key] == offset and not (value is None and drops_tombstones))
    ]


def stored(shard: ConsumerGroupShard) -> Any:
    group = shard.state.groups.get(GROUP)
    if not isinstance(group, ConsumerGroup):
        return None
    return (
        (group.epoch, group.metadata_hash, group.target_epoch, group.target_timestamp),
        group.members,
        group.targets,
        group.resolved,
        group.static_members,
        (dict(group.names), dict(group.regexes)),
    )


@settings(max_examples=80, deadline=None)
@given(st.lists(steps, max_size=25), st.floats(0, 1), st.booleans())
def test_f66_a_compacted_log_gives_the_same_groups(
    taken: list[Any], share: float, drops_tombstones: bool
) -> None:
    shard, members = ConsumerGroupShard(), dict[str, FakeMember]()
    shard.put_topic("t", 2)
    shard.put_topic("u", 2)
    for step in taken:
        take(shard, members, step)
    shard.fail_over()
    whole = stored(shard)

    records = shard.log.records
    shard.log.records = compacted(
        records, int(share * len(records)), drops_tombstones=drops_tombstones
    )
    shard.fail_over()

    assert stored(shard) == whole
