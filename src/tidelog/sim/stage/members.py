"""Members of a group with the consumer protocol on a stage, and the partitions that they own."""

from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

from tidelog.model.errors import ErrorCode
from tidelog.model.ids import Offset, TopicPartition
from tidelog.sim.clients.workload import group_messages as messages
from tidelog.sim.stage.commits import StageCommits
from tidelog.sim.stage.stage import Stage

GROUP = "team"


@dataclass(slots=True)
class StageMember:
    name: str
    epoch: int = 0
    owned: set[TopicPartition] = field(default_factory=set)
    before: int = 0
    """The epoch before the last change."""


class StageMembers:
    def __init__(self, stage: Stage) -> None:
        self._stage = stage
        self._members: dict[str, StageMember] = {}
        self.commits = StageCommits(stage, GROUP)

    def join(self, name: str, topics: list[str]) -> str:
        """Let a member join the group; returns its epoch and partitions in words."""
        self._members[name] = StageMember(name)
        return self._beat(self._members[name], topics, {})

    def beat(self, name: str) -> str:
        """Send a heartbeat. The member carries out a new assignment at once."""
        return self._beat(self._members[name], None, None)

    def report(self, name: str) -> str:
        """Send a heartbeat that reports which partitions the member owns."""
        member = self._members[name]
        return self._beat(member, None, self._by_id(member))

    def commit(self, name: str, partition: TopicPartition, offset: Offset, *, late: bool) -> str:
        """Commit an offset; `late` with the epoch that the member had before."""
        member = self._members[name]
        epoch = member.before if late else member.epoch
        return self.commits.commit(partition, offset, epoch, name)

    @property
    def owned_twice(self) -> list[TopicPartition]:
        owners = [one for member in self._members.values() for one in member.owned]
        return sorted({one for one in owners if owners.count(one) > 1})

    def _beat(
        self, member: StageMember, topics: list[str] | None, owned: dict[UUID, list[int]] | None
    ) -> str:
        message = messages.consumer_heartbeat(GROUP, member.name, member.epoch, topics, owned)
        answer = self.commits.ask(message, None)
        if answer is None:
            return "without an answer"
        if answer.error_code is not ErrorCode.none:
            return f"refused: {answer.error_code.name}"
        if answer.member_epoch != member.epoch:
            member.before, member.epoch = member.epoch, answer.member_epoch
        if answer.assignment is not None:
            member.owned = self._by_name(answer.assignment.topic_partitions)
        names = ", ".join(f"{one.topic}-{one.partition}" for one in sorted(member.owned))
        return f"{member.name} owns {names or 'nothing'} in epoch {member.epoch}"

    def _by_id(self, member: StageMember) -> dict[UUID, list[int]]:
        found: dict[UUID, list[int]] = {}
        for partition in member.owned:
            topic = self._stage.image.topics[partition.topic]
            found.setdefault(topic.topic_id, []).append(partition.partition)
        return found

    def _by_name(self, assigned: Any) -> set[TopicPartition]:
        names = self._stage.image.topic_names
        return {
            TopicPartition(names[entry.topic_id], index)
            for entry in assigned
            for index in entry.partitions
        }
