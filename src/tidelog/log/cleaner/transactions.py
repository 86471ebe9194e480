"""Which transactional batches and markers the cleaner may discard.

Records of aborted transactions are discarded. A marker may be discarded only if the pass has seen
no batch of its transaction before the marker (F80). A marker of an aborted transaction whose
batches the pass has seen stays, and its entry in the transaction index stays too. A later pass
finds no batch of the transaction and may discard the marker. One object is used for a whole pass,
in the order of the log.
"""

from collections.abc import Iterable
from heapq import heappop, heappush

from tidelog.log.results import AbortedTxn
from tidelog.model.ids import ProducerId
from tidelog.protocol.records.batch import BatchHeader
from tidelog.protocol.records.records import ControlType, control_type, iterate_records


class _Aborted:
    """An aborted transaction whose marker has not been read yet."""

    __slots__ = ("has_batches", "transaction")

    def __init__(self, transaction: AbortedTxn) -> None:
        self.transaction = transaction
        self.has_batches = False


class CleanedTransactions:
    __slots__ = ("_coming", "_ongoing_aborted", "_ongoing_committed", "kept")

    def __init__(self) -> None:
        self._coming: list[tuple[int, int, AbortedTxn]] = []
        self._ongoing_aborted: dict[ProducerId, _Aborted] = {}
        self._ongoing_committed: set[ProducerId] = set()
        self.kept: list[AbortedTxn] = []
        """Aborted transactions whose markers stay, for the new transaction index."""

    def add_aborted(self, transactions: Iterable[AbortedTxn]) -> None:
        """Add the aborted transactions of the next range of the log."""
        for one in transactions:
            heappush(self._coming, (one.first_offset, one.last_offset, one))

    def take_kept(self) -> list[AbortedTxn]:
        kept, self.kept = self.kept, []
        return kept

    def is_batch_discardable(self, header: BatchHeader) -> bool:
        """Whether a batch without control records belongs to an aborted transaction."""
        self._begin_up_to(header.last_offset)
        if not header.is_transactional:
            return False
        aborted = self._ongoing_aborted.get(header.producer_id)
        if aborted is None:
            self._ongoing_committed.add(header.producer_id)
            return False
        aborted.has_batches = True
        return True

    def is_marker_discardable(self, header: BatchHeader, batch: memoryview) -> bool:
        """Whether no batch of the transaction that this control batch ends has been read."""
        self._begin_up_to(header.last_offset)
        record = next(iterate_records(batch), None)
        if record is None:
            return True  # an earlier pass has removed the marker and kept the empty batch
        kind, producer = control_type(record), header.producer_id
        if kind is ControlType.ABORT:
            aborted = self._ongoing_aborted.pop(producer, None)
            if aborted is None or not aborted.has_batches:
                return True
            self.kept.append(aborted.transaction)
            return False
        if kind is ControlType.COMMIT:
            had_batches = producer in self._ongoing_committed
            self._ongoing_committed.discard(producer)
            return not had_batches
        return False

    def _begin_up_to(self, offset: int) -> None:
        while self._coming and self._coming[0][0] <= offset:
            transaction = heappop(self._coming)[2]
            self._ongoing_aborted.setdefault(transaction.producer_id, _Aborted(transaction))
