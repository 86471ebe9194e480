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
    def __init__(self, stage: Stage) -> None:
        self._stage = stage
        self.acknowledged: Offset = NO_OFFSET
        """The highest offset whose commit was acknowledged."""
        self.fetched: Offset = NO_OFFSET
        """The offset that the last fetch has returned."""

    def commit(self, partition: TopicPartition, offset: Offset) -> str:
        """Commit an offset; returns the result in words."""
        answer = self._ask(messages.commit(GROUP, -1, "", {partition: offset}))
        if answer is None:
            return "without an answer"
        error: ErrorCode = answer.topics[0].partitions[0].error_code
        if error is not ErrorCode.none:
            return f"refused: {error.name}"
        self.acknowledged = max(self.acknowledged, offset)
        return "acknowledged"

    def fetch(self, partition: TopicPartition) -> str:
        """Fetch the committed offset; returns the result in words."""
        answer = self._ask(messages.fetch_offsets(GROUP, [partition]))
        if answer is None:
            return "without an answer"
        group = answer.groups[0]
        if group.error_code is not ErrorCode.none:
            return f"refused: {group.error_code.name}"
        self.fetched = group.topics[0].partitions[0].committed_offset
        return f"offset {self.fetched}"

    def _ask(self, message: Any) -> Any:
        coordinator = self._stage.leader(COORDINATOR)
        if coordinator == NO_NODE:
            return None
        version, answers = messages.BY_NAME, list[bytes | None]()
        frame = frame_of(message, version=version)
        self._stage.client(coordinator).request(frame, answers.append)
        self._stage.run_until(lambda: bool(answers), PATIENCE_MS)
        return answer_in(answers[0], message, version) if answers and answers[0] else None
