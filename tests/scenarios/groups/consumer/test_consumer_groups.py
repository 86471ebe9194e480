"""Scenarios of consumer groups (KIP-848). Members are named; the name is the member id.

topic t partitions=4 | delete t
join A topics=t,u [regex=^t] [instance=a] [assignor=range] [timeout=60000] [version=0]
beat A [epoch=2]             a heartbeat without changes
report A [epoch=2]           A has carried out its last assignment, and reports what it owns
subscribe A topics=u [regex=^u]
leave A [static]             `static`: A leaves for a while
commit A t-0 [epoch=2] | fetch A [epoch=2]           only the check of the epoch
classic join X topics=t [instance=x] | classic beat X | classic leave X
classic sync X [X=t:0,1 Y=t:2]                       the leader of a classic group sends assignments
wait 5000 | fail over | describe | refuse writes | accept writes
"""

from pathlib import Path
from typing import Any

import pytest
from tests.scenarios.transcript import Words, check, transcripts
from tests.unit.coordination.groups.consumer.classic_member import FakeClassicMember
from tests.unit.coordination.groups.consumer.consumer_group_shard import (
    GROUP,
    ConsumerGroupShard,
    FakeMember,
)

from tidelog.config.group_settings import ConsumerGroupSettings
from tidelog.coordination.groups.consumer import records as r
from tidelog.coordination.groups.consumer.embedded_protocol import read_assignment
from tidelog.coordination.groups.consumer.group import ConsumerGroup
from tidelog.coordination.records import GroupMetadataValue
from tidelog.model.errors import ErrorCode

HERE = Path(__file__).parent
COMMIT_VERSION = 10


class Storyteller:
    def __init__(self) -> None:
        self.shard = ConsumerGroupShard(ConsumerGroupSettings(max_size=4))
        self.members: dict[str, FakeMember] = {}
        self.classic: dict[str, FakeClassicMember] = {}
        self.open: dict[int, tuple[str, str]] = {}
        self.shown_records = 0

    def respond(self, line: str) -> str:
        command, *rest = line.split()
        answer = getattr(self, f"do_{command}")(rest)
        shown = [answer] if answer else []
        shown += self.late_answers()
        return "\n".join([*shown, *self.log_lines(), f"[{self.state()}]"])

    # -- Commands of a scenario --------------------------------------------------------------------

    def do_topic(self, rest: list[str]) -> str:
        words = Words(" ".join(rest))
        self.shard.put_topic(words.command, words.number("partitions"))
        return ""

    def do_delete(self, rest: list[str]) -> str:
        self.shard.delete_topic(rest[0])
        return ""

    def do_join(self, rest: list[str]) -> str:
        words = Words(" ".join(rest))
        name = words.command
        member = self.members.setdefault(name, FakeMember(name))
        member.instance_id = words.text("instance", "") or None
        fields: dict[str, Any] = {}
        if "regex" in words:
            fields["subscribed_topic_regex"] = words.text("regex")
        if "assignor" in words:
            fields["server_assignor"] = words.text("assignor")
        return self.tell(name, self.shard.join(member, *words.list("topics", ""), **fields))

    def do_beat(self, rest: list[str]) -> str:
        return self.heartbeat(Words(" ".join(rest)))

    def do_report(self, rest: list[str]) -> str:
        words = Words(" ".join(rest))
        self.members[words.command].carry_out()
        return self.heartbeat(words, report=True)

    def do_subscribe(self, rest: list[str]) -> str:
        words = Words(" ".join(rest))
        fields: dict[str, Any] = {"subscribed_topic_names": tuple(words.list("topics", ""))}
        if "regex" in words:
            fields["subscribed_topic_regex"] = words.text("regex")
        return self.heartbeat(words, **fields)

    def heartbeat(self, words: Words, **fields: Any) -> str:
        member = self.members[words.command]
        if "epoch" in words:
            fields["member_epoch"] = words.number("epoch")
        words.check_all_read()
        return self.tell(words.command, self.shard.beat(member, **fields))

    def do_leave(self, rest: list[str]) -> str:
        epoch = -2 if "static" in rest else -1
        return self.tell(rest[0], self.shard.leave(self.members[rest[0]], epoch))

    def do_commit(self, rest: list[str]) -> str:
        words = Words(" ".join(rest[:1] + rest[2:]))
        topic, partition = rest[1].split("-")
        group, name = self.shard.group, words.command
        epoch = words.number("epoch", self.members[name].epoch)
        error = group.check_commit(name, None, epoch, COMMIT_VERSION)
        if error is ErrorCode.none:
            topic_id = self.shard.image.topics[topic].topic_id
            error = group.check_committed_partition(name, epoch, topic_id, int(partition))
        return f"{name} commit: {coded(error)}"

    def do_fetch(self, rest: list[str]) -> str:
        words = Words(" ".join(rest))
        epoch = words.number("epoch", self.members[words.command].epoch)
        return f"{words.command} fetch: {coded(self.shard.group.check_fetch(words.command, epoch))}"

    def do_wait(self, rest: list[str]) -> str:
        self.shard.wait(int(rest[0]))
        return ""

    def do_fail(self, rest: list[str]) -> str:
        assert rest == ["over"]
        self.shard.fail_over()
        return ""

    def do_refuse(self, rest: list[str]) -> str:
        self.shard.log.refuses_with = ErrorCode.not_enough_replicas
        return ""

    def do_accept(self, rest: list[str]) -> str:
        self.shard.log.refuses_with = ErrorCode.none
        return ""

    def do_describe(self, rest: list[str]) -> str:
        group = self.shard.describe()
        if group.error_code is not ErrorCode.none:
            return f"{coded(group.error_code)} {group.error_message}"
        lines = [
            f"{group.group_state} epoch={group.group_epoch} target={group.assignment_epoch} "
            f"assignor={group.assignor_name}"
        ]
        lines += [
            f"  {short(m.member_id, self.classic)} epoch={m.member_epoch} "
            f"has {self.described(m.assignment)} "
            f"target {self.described(m.target_assignment)}"
            for m in group.members
        ]
        return "\n".join(lines)

    # -- Members with the classic protocol ---------------------------------------------------------

    def do_classic(self, rest: list[str]) -> str:
        kind, name, *others = rest
        member = self.classic.setdefault(name, FakeClassicMember(name))
        words = Words(" ".join([kind, *others]))
        match kind:
            case "join":
                member.instance_id = words.text("instance", member.instance_id or "") or None
                member.topics = tuple(words.list("topics", ",".join(member.topics)))
                message = member.joining(GROUP)
            case "sync":
                given = {self.classic[to].member_id: what for to, what in assigned(others)}
                message = member.syncing(GROUP, given)
            case "beat":
                message = member.beating(GROUP)
            case _:
                message = member.leaving(GROUP)
        answer = self.shard.ask(message, version=9 if kind == "join" else 4, client=name)
        if answer is None:
            self.open[self.shard.last_ticket] = (name, kind)
            return ""
        return self.tell_classic(name, kind, answer)

    def late_answers(self) -> list[str]:
        found = [(ticket, self.shard.late_answer(ticket)) for ticket in list(self.open)]
        return [
            self.tell_classic(*self.open.pop(ticket), answer)
            for ticket, answer in found
            if answer is not None
        ]

    def tell_classic(self, name: str, kind: str, answer: Any) -> str:
        error, member = answer.error_code, self.classic[name]
        if kind == "join":
            member.hear_join(answer)
        if kind == "sync" and error is ErrorCode.none:
            member.owned = read_assignment(answer.assignment).partitions
        if error is not ErrorCode.none:
            return f"{name} {kind}: {coded(error)}"
        match kind:
            case "join":
                role = " leads" if answer.leader == answer.member_id else ""
                return f"{name} join: generation={answer.generation_id}{role}"
            case "sync":
                shown = [f"{topic}:{','.join(map(str, ids))}" for topic, ids in member.owned]
                return f"{name} sync: assigned {' '.join(shown) or 'nothing'}"
        return f"{name} {kind}: ok"

    # -- Answers -----------------------------------------------------------------------------------

    def tell(self, name: str, response: Any) -> str:
        if response.error_code is not ErrorCode.none:
            return f"{name}: {coded(response.error_code)} {response.error_message or ''}".rstrip()
        if response.assignment is None:
            return f"{name}: epoch={response.member_epoch}"
        shown = self.partitions(
            {e.topic_id: e.partitions for e in response.assignment.topic_partitions}
        )
        return f"{name}: epoch={response.member_epoch} assigned {shown}"

    def described(self, assignment: Any) -> str:
        return self.partitions({e.topic_id: e.partitions for e in assignment.topic_partitions})

    def partitions(self, partitions: Any) -> str:
        names = {topic.topic_id: name for name, topic in self.shard.image.topics.items()}
        shown = [
            f"{names.get(topic_id, '?')}:{','.join(map(str, sorted(ids)))}"
            for topic_id, ids in sorted(partitions.items())
        ]
        return " ".join(shown) or "nothing"

    def log_lines(self) -> list[str]:
        new = self.shard.log.records[self.shown_records :]
        self.shown_records = len(self.shard.log.records)
        return [f"log: {self.record(*self.shard.machine.decode(*one))}" for one in new]  # type: ignore[misc]

    def record(self, key: Any, value: Any) -> str:
        name = type(key).__name__.removeprefix("ConsumerGroup").removesuffix("Key")
        about = getattr(key, "member_id", getattr(key, "regular_expression", ""))
        about = short(about, self.classic)
        return " ".join(filter(None, (name, about, self.value(value))))

    def value(self, value: Any) -> str:
        match value:
            case None:
                return "removed"
            case r.ConsumerGroupMetadataValue():
                return f"epoch={value.epoch}"
            case r.ConsumerGroupTargetAssignmentMetadataValue():
                return f"epoch={value.assignment_epoch}"
            case r.ConsumerGroupMemberMetadataValue():
                shown = [",".join(value.subscribed_topic_names) or "no topics"]
                shown += [f"regex={value.subscribed_topic_regex}"] * bool(
                    value.subscribed_topic_regex
                )
                shown += [f"instance={value.instance_id}"] * (value.instance_id is not None)
                return " ".join(shown)
            case r.ConsumerGroupTargetAssignmentMemberValue():
                return self.partitions({e.topic_id: e.partitions for e in value.topic_partitions})
            case r.ConsumerGroupCurrentMemberAssignmentValue():
                state = ("STABLE", "UNREVOKED_PARTITIONS", "UNRELEASED_PARTITIONS")[value.state]
                has = {e.topic_id: e.partitions for e in value.assigned_partitions}
                gives_up = {e.topic_id: e.partitions for e in value.partitions_pending_revocation}
                shown = [f"epoch={value.member_epoch} {state} has {self.partitions(has)}"]
                shown += [f"gives up {self.partitions(gives_up)}"] * bool(gives_up)
                return " ".join(shown)
            case GroupMetadataValue():
                members = [short(member.member_id, self.classic) for member in value.members]
                return f"generation={value.generation} members={','.join(members) or '-'}"
            case r.ConsumerGroupRegularExpressionValue():
                return f"matches {','.join(value.topics) or 'nothing'}"
        raise AssertionError(value)

    def names(self, group: ConsumerGroup) -> str:
        return ",".join(short(one, self.classic) for one in group.members) or "-"

    def state(self) -> str:
        group = self.shard.state.groups.get(GROUP)
        if group is None:
            return "no group"
        if not isinstance(group, ConsumerGroup):
            return f"{group.type_name} {group.state_name}"
        return f"{group.state_name} epoch={group.epoch} members={self.names(group)}"


def assigned(words: list[str]) -> list[tuple[str, list[tuple[str, tuple[int, ...]]]]]:
    """Assignments such as `X=t:0,1`."""
    found = []
    for word in words:
        to, _, what = word.partition("=")
        topic, _, ids = what.partition(":")
        found.append((to, [(topic, tuple(map(int, ids.split(","))))] if ids else []))
    return found


def short(member_id: str, classic: dict[str, FakeClassicMember]) -> str:
    """The name of a member; the coordinator chose the ids of members with the classic protocol."""
    return next((name for name, one in classic.items() if one.member_id == member_id), member_id)


def coded(error: ErrorCode) -> str:
    return "ok" if error is ErrorCode.none else error.name.upper()


@pytest.mark.parametrize("path", transcripts(HERE), ids=lambda path: path.stem)
def test_story(path: Path, request: pytest.FixtureRequest) -> None:
    check(path, Storyteller().respond, rewrite=request.config.getoption("--rewrite"))
