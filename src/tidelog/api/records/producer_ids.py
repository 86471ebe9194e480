"""The producer ids that this broker may hand out.

The controller gives out blocks, each to one broker and once for all time, so that an id handed out
here is unique in the cluster. What is left of a block is lost with the process, as in Kafka.
"""

from collections import deque

from tidelog.model.ids import ProducerId


class ProducerIdBlocks:
    """Blocks allocated to this broker; no id leaves twice."""

    def __init__(self) -> None:
        self._blocks: deque[range] = deque()

    def take(self) -> ProducerId | None:
        """The next id, or None when a new block is needed."""
        if not self._blocks:
            return None
        block = self._blocks.popleft()
        if len(block) > 1:
            self._blocks.appendleft(block[1:])
        return block[0]

    def add(self, first: ProducerId, length: int) -> None:
        assert length > 0
        self._blocks.append(range(first, first + length))
