"""The offset commits of a group on a stage, and the offset that the group's coordinator returns."""

from typing import Any

from tidelog.model.errors import ErrorCode
from tidelog.model.ids import NO_NODE, NO_OFFSET, Millis, Offset, TopicPartition
from tidelog.sim.clients.messages import answer_in, frame_of
from tidelog.sim.clients.workload import group_messages as messages
from tidelog.sim.stage.stage import Stage

GROUP = "readers"
COORDINATOR = TopicPartition("__consumer_offsets", 0)
PATIENCE_MS: Millis = 2_000


class StageCommits:
    def __init__(self, stage: Stage, group: str = GROUP) -> None:
        self._stage = stage
        self._group = group
        self.acknowledged: Offset = NO_OFFSET
        """The highest offset whose commit was acknowledged."""
        self.fetched: Offset = NO_OFFSET
        """The offset that the last fetch has returned."""

    def commit(
        self, partition: TopicPartition, offset: Offset, epoch: int = -1, member: str = ""
    ) -> str:
        """Commit an offset, as a member or without one; returns the result in words."""
        version = messages.WITH_EPOCH if member else messages.BY_NAME
        answer = self.ask(messages.commit(self._group, epoch, member, {partition: offset}), version)
        if answer is None:
            return "without an answer"
        error: ErrorCode = answer.topics[0].partitions[0].error_code
        if error is not ErrorCode.none:
            return f"refused: {error.name}"
        self.acknowledged = max(self.acknowledged, offset)
        return "acknowledged"

    def fetch(self, partition: TopicPartition) -> str:
        """Fetch the committed offset; returns the result in words."""
        answer = self.ask(messages.fetch_offsets(self._group, [partition]), messages.BY_NAME)
        if answer is None:
            return "without an answer"
        group = answer.groups[0]
        if group.error_code is not ErrorCode.none:
            return f"refused: {group.error_code.name}"
        self.fetched = group.topics[0].partitions[0].committed_offset
        return f"offset {self.fetched}"

    def ask(self, message: Any, version: int | None) -> Any:
        """The response of the group's coordinator; None if there is none."""
        coordinator = self._stage.leader(COORDINATOR)
        if coordinator == NO_NODE:
            return None
        answers = list[bytes | None]()
        frame = frame_of(message, version=version)
        self._stage.client(coordinator).request(frame, answers.append)
        self._stage.run_until(lambda: bool(answers), PATIENCE_MS)
        return answer_in(answers[0], message, version) if answers and answers[0] else None
