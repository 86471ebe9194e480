"""Scenarios of the transaction coordinator.

init a [timeout=60000] [pid=1000 epoch=3]     with pid and epoch: a producer that recovers
add a t-0 t-1 [v2] | verify a t-0             `v2`: a client with transaction version 2
commit a [v2] | abort a [v2]                  pid= and epoch= replace those of the last answer
describe a | list [states=Ongoing] [pids=1000] [longer=5] [pattern=a.*]
markers [t-0=not_leader_or_follower] | markers lost      answers the oldest WriteTxnMarkers
wait 3000 | fail over [keeps=2] | leader t-0 2 | delete t-0 | version 1
exhaust a 32766                               sets the epoch
log held | log committed | log refuses not_enough_replicas | log accepts
"""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.scenarios.transcript import check, transcripts
from tests.unit.coordination.transactions.coordinator_client import CoordinatorUnderTest

from tidelog.coordination.groups.consumer.expressions import compiled
from tidelog.coordination.runtime.decision import RecordOrigin
from tidelog.coordination.transactions.describing import TransactionFilter, known_states
from tidelog.coordination.transactions.initializing import KnownProducer
from tidelog.coordination.transactions.requests import (
    AddPartitions,
    DescribeTransaction,
    EndTransaction,
    InitProducer,
    ListTransactionIds,
    PartitionsAdded,
    ProducerAssigned,
    TransactionDescribed,
    TransactionsListed,
)
from tidelog.coordination.transactions.transaction import Transaction
from tidelog.coordination.transactions.transaction_records import TransactionKey
from tidelog.model.errors import ErrorCode
from tidelog.model.ids import TopicPartition

HERE = Path(__file__).parent


class Storyteller:
    def __init__(self) -> None:
        self.coordinator = CoordinatorUnderTest()
        self.producers: dict[str, tuple[int, int]] = {}
        self.open: dict[int, str] = {}
        self.shown_records = 0
        self.shown_markers: list[Any] = []

    def respond(self, line: str) -> str:
        command, *words = line.split()
        values = dict(word.split("=", 1) for word in words if "=" in word)
        plain = [word for word in words if "=" not in word]
        getattr(self, f"do_{command}")(plain, values)
        shown = [*self.log_lines(), *self.marker_lines(), *self.answer_lines()]
        return "\n".join(shown) or "ok"

    # -- Commands of a scenario --------------------------------------------------------------------

    def do_init(self, words: list[str], values: dict[str, str]) -> None:
        expected = None
        if "epoch" in values:
            expected = KnownProducer(*self.producer(words[0], values))
        timeout_ms = int(values.get("timeout", 60_000))
        self.ask(
            words[0],
            InitProducer(transactional_id=words[0], timeout_ms=timeout_ms, expected=expected),
        )

    def do_add(self, words: list[str], values: dict[str, str], verify: bool = False) -> None:
        id_, *rest = words
        producer_id, epoch = self.producer(id_, values)
        version = 2 if "v2" in rest else 0
        partitions = tuple(partition(word) for word in rest if word != "v2")
        self.ask(
            id_,
            AddPartitions(
                transactional_id=id_,
                producer_id=producer_id,
                epoch=epoch,
                partitions=partitions,
                client_version=version,
                verify_only=verify,
            ),
        )

    def do_verify(self, words: list[str], values: dict[str, str]) -> None:
        self.do_add(words, values, verify=True)

    def do_commit(self, words: list[str], values: dict[str, str], commits: bool = True) -> None:
        producer_id, epoch = self.producer(words[0], values)
        self.ask(
            words[0],
            EndTransaction(
                transactional_id=words[0],
                producer_id=producer_id,
                epoch=epoch,
                commits=commits,
                client_version=2 if "v2" in words else 0,
            ),
        )

    def do_abort(self, words: list[str], values: dict[str, str]) -> None:
        self.do_commit(words, values, commits=False)

    def do_describe(self, words: list[str], values: dict[str, str]) -> None:
        self.ask("-", DescribeTransaction(words[0]))

    def do_list(self, words: list[str], values: dict[str, str]) -> None:
        states, unknown = known_states(values["states"].split(",") if "states" in values else ())
        assert not unknown
        pids = frozenset(map(int, values["pids"].split(","))) if "pids" in values else None
        pattern = compiled(values["pattern"]) if "pattern" in values else None
        longer_than_ms = int(values.get("longer", -1))
        wanted = TransactionFilter(states or None, pids, longer_than_ms, pattern)
        self.ask("-", ListTransactionIds(wanted))

    def do_markers(self, words: list[str], values: dict[str, str]) -> None:
        if words == ["lost"]:
            self.coordinator.lose_markers()
        else:
            self.coordinator.answer_markers(
                {partition(name): ErrorCode[error] for name, error in values.items()}
            )

    def do_wait(self, words: list[str], values: dict[str, str]) -> None:
        self.coordinator.advance(int(words[0]))

    def do_fail(self, words: list[str], values: dict[str, str]) -> None:
        assert words == ["over"]
        self.coordinator.fail_over(keeps=int(values["keeps"]) if "keeps" in values else None)
        self.shown_records = len(self.coordinator.log.records)

    def do_leader(self, words: list[str], values: dict[str, str]) -> None:
        self.coordinator.leaders[partition(words[0])] = int(words[1])
        self.coordinator.change_image()

    def do_delete(self, words: list[str], values: dict[str, str]) -> None:
        del self.coordinator.leaders[partition(words[0])]
        self.coordinator.change_image()

    def do_version(self, words: list[str], values: dict[str, str]) -> None:
        self.coordinator.transaction_version = int(words[0])
        self.coordinator.change_image()

    def do_exhaust(self, words: list[str], values: dict[str, str]) -> None:
        """Continue as if the producer had reached this epoch."""
        known = self.coordinator.machine.transactions[words[0]]
        reached = replace(known, epoch=int(words[1]))
        self.coordinator.machine.replay((TransactionKey(words[0]), reached), RecordOrigin(0))
        self.producers[words[0]] = known.producer_id, reached.epoch

    def do_log(self, words: list[str], values: dict[str, str]) -> None:
        log = self.coordinator.log
        match words:
            case ["held"]:
                log.is_held = True
            case ["committed"]:
                log.is_held = False
                self.coordinator.commit_log()
            case ["refuses", error]:
                log.refuses = ErrorCode[error]
            case ["accepts"]:
                log.refuses = None
            case _:
                raise AssertionError(words)

    def producer(self, id_: str, values: dict[str, str]) -> tuple[int, int]:
        producer_id, epoch = self.producers.get(id_, (-1, -1))
        return int(values.get("pid", producer_id)), int(values.get("epoch", epoch))

    def ask(self, id_: str, message: Any) -> None:
        self.open[self.coordinator.ask(message)] = id_

    # -- Answers to commands -----------------------------------------------------------------------

    def log_lines(self) -> list[str]:
        records = self.coordinator.log.records
        new, self.shown_records = records[self.shown_records :], len(records)
        lines = []
        for key, value in new:
            decoded = self.coordinator.machine.decode(key, value)
            assert decoded is not None
            name, transaction = decoded[0].transactional_id, decoded[1]
            shown = "tombstone" if transaction is None else state_line(transaction)
            lines.append(f"log: {name} {shown}")
        return lines

    def marker_lines(self) -> list[str]:
        lines = []
        outgoing = self.coordinator.outgoing
        destinations = self.coordinator.destinations()
        for to, request in zip(destinations, outgoing, strict=True):
            if any(request is known for known in self.shown_markers):
                continue
            self.shown_markers.append(request)
            for one in request.message.markers:
                where = ",".join(
                    f"{topic.name}-{index}"
                    for topic in one.topics
                    for index in topic.partition_indexes
                )
                lines.append(
                    f"to {to}: {'commit' if one.transaction_result else 'abort'} "
                    f"pid={one.producer_id} epoch={one.producer_epoch} v{one.transaction_version} "
                    f"coordinator={one.coordinator_epoch} {where}"
                )
        return lines

    def answer_lines(self) -> list[str]:
        lines = []
        for ticket, id_ in list(self.open.items()):
            if ticket not in self.coordinator.answers:
                continue
            del self.open[ticket]
            answer = self.coordinator.answers[ticket]
            if isinstance(answer, ProducerAssigned) and answer.producer_id >= 0:
                self.producers[id_] = answer.producer_id, answer.epoch
            lines += answer_line(answer)
        return lines


def answer_line(answer: Any) -> list[str]:
    match answer:
        case ProducerAssigned(error, -1, -1):
            return [f"answer: {error.name}"]
        case ProducerAssigned(error, producer_id, epoch):
            return [f"answer: {error.name} pid={producer_id} epoch={epoch}"]
        case PartitionsAdded(errors):
            return [f"answer: {' '.join(dict.fromkeys(error.name for error in errors))}"]
        case TransactionDescribed(error, None):
            return [f"answer: {error.name}"]
        case TransactionDescribed(_, transaction):
            assert transaction is not None
            return [f"answer: {state_line(transaction)} since={transaction.started_at}"]
        case TransactionsListed(_, found):
            return [f"answer: {id_} {one.state.title}" for id_, one in found] or ["answer: none"]
    raise AssertionError(answer)


def state_line(transaction: Transaction) -> str:
    extra = "".join(f" {topic}-{index}" for topic, index in transaction.partitions)
    if transaction.next_producer_id != -1:
        extra += f" next={transaction.next_producer_id}"
    pid, epoch = transaction.producer_id, transaction.epoch
    return f"{transaction.state.title} pid={pid} epoch={epoch}{extra}"


def partition(word: str) -> TopicPartition:
    topic, _, index = word.rpartition("-")
    return TopicPartition(topic, int(index))


@pytest.mark.parametrize("path", transcripts(HERE), ids=lambda path: path.stem)
def test_story(path: Path, request: pytest.FixtureRequest) -> None:
    check(path, Storyteller().respond, rewrite=request.config.getoption("--rewrite"))
