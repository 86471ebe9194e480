"""Properties of consumer groups: one owner per partition, and convergence.

The steps are random, and so is when a client carries out an assignment, whether a response reaches
it, and when the coordinator fails over.
"""

from collections import Counter
from dataclasses import replace
from uuid import UUID

from hypothesis import given, settings
from hypothesis import strategies as st
from tests.unit.coordination.groups.consumer.consumer_group_shard import (
    ConsumerGroupShard,
    FakeMember,
)

from tidelog.config.group_settings import ConsumerGroupSettings
from tidelog.model.errors import ErrorCode

NAMES = "ABCDE"
TOPICS = ("t", "u")

steps = st.one_of(
    st.tuples(st.just("join"), st.sampled_from(NAMES), st.sampled_from((TOPICS, ("t",), ("u",)))),
    st.tuples(st.just("beat"), st.sampled_from(NAMES), st.booleans()),
    st.tuples(st.just("lost"), st.sampled_from(NAMES), st.just(None)),
    st.tuples(st.just("leave"), st.sampled_from(NAMES), st.just(None)),
    st.tuples(st.just("wait"), st.just(""), st.sampled_from((500, 2_000, 30_000))),
    st.tuples(st.just("grow"), st.sampled_from(TOPICS), st.integers(1, 3)),
    st.tuples(st.just("fail over"), st.just(""), st.just(None)),
)


class Run:
    def __init__(self) -> None:
        self.shard = ConsumerGroupShard(ConsumerGroupSettings())
        for topic in TOPICS:
            self.shard.put_topic(topic, 3)
        self.members: dict[str, FakeMember] = {}

    def step(self, kind: str, name: str, argument: object) -> None:
        member = self.members.get(name)
        match kind:
            case "join":
                assert isinstance(argument, tuple)
                self.members[name] = FakeMember(name)
                self.shard.join(self.members[name], *argument)
            case "beat" if member is not None:
                self.beat(member, carries_out=bool(argument))
            case "lost" if member is not None:
                deaf = replace(member)
                self.shard.beat(deaf, report=True)
                member.must_send_all = True
            case "leave" if member is not None:
                self.shard.leave(self.members.pop(name))
            case "wait":
                assert isinstance(argument, int)
                self.shard.wait(argument)
                self.drop_expired()
            case "grow":
                assert isinstance(argument, int)
                count = len(self.shard.image.topics[name].partitions)
                self.shard.put_topic(name, count + argument)
            case "fail over":
                self.shard.fail_over()

    def beat(self, member: FakeMember, *, carries_out: bool) -> None:
        if carries_out:
            member.carry_out()
        response = self.shard.beat(member, report=carries_out)
        if response.error_code is not ErrorCode.none:
            # The client abandons its partitions and joins again.
            assert response.error_code in (
                ErrorCode.fenced_member_epoch,
                ErrorCode.unknown_member_id,
            )
            self.shard.join(member, *TOPICS)

    def drop_expired(self) -> None:
        """A client that was silent for too long has stopped."""
        directory = self.shard.state.groups
        known = self.shard.group.members if directory else {}
        self.members = {name: member for name, member in self.members.items() if name in known}

    def check_owners(self) -> None:
        owners = Counter(
            (topic_id, partition)
            for member in self.members.values()
            for topic_id, partitions in member.owned.items()
            for partition in partitions
        )
        assert all(count == 1 for count in owners.values()), owners


@settings(max_examples=150, deadline=None)
@given(st.lists(steps, max_size=40))
def test_f67_no_partition_has_two_owners_and_the_group_converges(
    taken: list[tuple[str, str, object]],
) -> None:
    run = Run()
    for kind, name, argument in taken:
        run.step(kind, name, argument)
        run.check_owners()

    for _ in range(12):
        run.shard.wait(1_000)
        for member in list(run.members.values()):
            run.beat(member, carries_out=True)
            run.check_owners()

    if run.members:
        subscribed = run.shard.group.subscribed_topics()
        owned = {
            (topic_id, partition)
            for member in run.members.values()
            for topic_id, partitions in member.owned.items()
            for partition in partitions
        }
        assert owned == partitions_of(run.shard, subscribed)
        assert run.shard.describe().group_state == "Stable"


def partitions_of(shard: ConsumerGroupShard, names: frozenset[str]) -> set[tuple[UUID, int]]:
    topics = [shard.image.topics[name] for name in names]
    return {(topic.topic_id, partition) for topic in topics for partition in topic.partitions}
