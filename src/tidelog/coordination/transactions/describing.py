"""DescribeTransactions and ListTransactions: what a coordinator shows of its transactions."""

from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Any, NamedTuple

from tidelog.coordination.transactions.states import BY_TITLE, TransactionState
from tidelog.coordination.transactions.transaction import Transaction
from tidelog.model.ids import Millis, ProducerId, TopicPartition


class TransactionFilter(NamedTuple):
    """Which transactions to list. An empty filter lists all of them."""

    states: frozenset[TransactionState] | None = None
    producer_ids: frozenset[ProducerId] | None = None
    longer_than_ms: Millis = -1
    id_pattern: Any = None
    """A compiled expression of RE2."""

    def matches(self, transactional_id: str, transaction: Transaction, now: Millis) -> bool:
        if transaction.state is TransactionState.DEAD:
            return False
        if self.states is not None and transaction.state not in self.states:
            return False
        if self.producer_ids is not None and transaction.producer_id not in self.producer_ids:
            return False
        if self.longer_than_ms >= 0 and not self._is_long(transaction, now):
            return False
        return self.id_pattern is None or self.id_pattern.fullmatch(transactional_id) is not None

    def _is_long(self, transaction: Transaction, now: Millis) -> bool:
        return now - transaction.started_at > self.longer_than_ms


def known_states(titles: Iterable[str]) -> tuple[frozenset[TransactionState], list[str]]:
    """The states with these names, and the names that are unknown."""
    titles = list(titles)
    found = frozenset(BY_TITLE[title] for title in titles if title in BY_TITLE)
    return found, [title for title in dict.fromkeys(titles) if title not in BY_TITLE]


def listed(
    transactions: Mapping[str, Transaction], wanted: TransactionFilter, now: Millis
) -> Iterator[tuple[str, Transaction]]:
    for id_, transaction in transactions.items():
        if wanted.matches(id_, transaction, now):
            yield id_, transaction


def by_topic(partitions: Collection[TopicPartition]) -> dict[str, tuple[int, ...]]:
    """The partitions of each topic, in the order of the topics' first partitions."""
    grouped: dict[str, list[int]] = {}
    for topic, index in partitions:
        grouped.setdefault(topic, []).append(index)
    return {topic: tuple(indexes) for topic, indexes in grouped.items()}
