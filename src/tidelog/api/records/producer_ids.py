"""The producer ids that this broker may assign.

The controller allocates each block only once, to one broker, so that every id is unique in the
cluster. As in Kafka, the rest of a block is lost when the process ends.
"""

from collections import deque

from tidelog.model.ids import ProducerId


class ProducerIdBlocks:
    """The blocks allocated to this broker; each id is assigned once."""

    def __init__(self) -> None:
        self._blocks: deque[range] = deque()

    def take(self) -> ProducerId | None:
        """The next id, or None if a new block is needed."""
        if not self._blocks:
            return None
        block = self._blocks.popleft()
        if len(block) > 1:
            self._blocks.appendleft(block[1:])
        return block[0]

    def add(self, first: ProducerId, length: int) -> None:
        assert length > 0
        self._blocks.append(range(first, first + length))
