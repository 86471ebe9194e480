"""Finds the aborted transactions of a log from its batches alone.

The rules are the same as in `ProducerStates`, but only open transactions are kept. The result is
used to check transaction indexes, which have no checksum (F55).
"""

from collections.abc import Mapping

from tidelog.log.producers.markers import read_marker
from tidelog.log.producers.producers import ProducerEntry
from tidelog.log.results import AbortedTxn
from tidelog.model.ids import NO_OFFSET, Offset, ProducerId
from tidelog.protocol.records.batch import BatchHeader


class AbortedReplay:
    """One pass over the batches of a log, from an offset where the open transactions are known."""

    __slots__ = ("_open", "found")

    def __init__(self, producers: Mapping[ProducerId, ProducerEntry]) -> None:
        first_offsets = (
            (entry.transaction_first_offset, producer)
            for producer, entry in producers.items()
            if entry.transaction_first_offset != NO_OFFSET
        )
        self._open: dict[ProducerId, Offset] = {
            producer: first for first, producer in sorted(first_offsets)
        }
        self.found: list[AbortedTxn] = []
        """The aborted transactions, in the order of their markers."""

    def take(self, header: BatchHeader, batch: memoryview) -> None:
        """Process the next batch of the log."""
        producer = header.producer_id
        if producer < 0:
            return
        if not header.is_control:
            if header.is_transactional:
                self._open.setdefault(producer, header.base_offset)
            return
        marker = read_marker(batch)
        if marker is None:
            return
        first = self._open.pop(producer, None)
        if first is not None and marker.is_abort:
            last = header.last_offset
            stable = next(iter(self._open.values()), last + 1)
            self.found.append(AbortedTxn(producer, first, last, stable))

    def take_found(self) -> list[AbortedTxn]:
        """Return the aborted transactions found since the last call."""
        taken, self.found = self.found, []
        return taken
