"""A batch whose predecessor was refused for the moment, or truncated, is retried after it (F44)."""

import pytest
from tests.sim.messages import create_topic, produce_to
from tests.unit.log.support import batch
from tests.unit.node.bench import Bench

from tidelog.log.results import ProducerSequence
from tidelog.model.effects import AppendResult
from tidelog.model.errors import ErrorCode
from tidelog.model.ids import TopicPartition
from tidelog.node.partitions.partitions import Partitions
from tidelog.node.partitions.refused_sequences import RefusedSequences

REFUSED, GAP = ErrorCode.not_leader_or_follower, ErrorCode.out_of_order_sequence_number
ACCEPTED = ErrorCode.none
ORDERS = TopicPartition("orders", 0)
OUT_OF_ORDER = AppendResult(GAP), -1


def numbered(sequence: int) -> memoryview:
    return batch(producer=7, epoch=0, sequence=sequence)


class Leader:
    """A node that leads the partition, but may lose contact with the other nodes."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self._node = Bench()
        self._node.ask(create_topic("orders", 1))
        self._is_cut_off = False
        monkeypatch.setattr(Partitions, "_is_out_of_touch", lambda *_: self._is_cut_off)

    def write(self, sequence: int, *, producer: int = 7, epoch: int = 0) -> ErrorCode:
        records = bytes(batch(producer=producer, epoch=epoch, sequence=sequence))
        [(_, [result])] = self._node.ask(produce_to("orders", records)).topics
        error: ErrorCode = result.error
        return error

    def cut_off(self, sequence: int, *, producer: int = 7) -> None:
        """Let the node refuse one batch, because it has lost contact with the other nodes."""
        self._is_cut_off = True
        assert self.write(sequence, producer=producer) is REFUSED
        self._is_cut_off = False

    def wait(self, ms: int) -> None:
        self._node.pass_time(ms)


@pytest.fixture
def leader(monkeypatch: pytest.MonkeyPatch) -> Leader:
    made = Leader(monkeypatch)
    assert made.write(0) is ACCEPTED
    return made


def test_f44_the_batch_behind_a_refused_one_is_refused_alike(leader: Leader) -> None:
    leader.cut_off(1)

    assert leader.write(2) is REFUSED
    assert leader.write(1) is ACCEPTED
    assert leader.write(2) is ACCEPTED
    assert leader.write(3) is ACCEPTED


def test_the_first_of_several_refused_batches_counts(leader: Leader) -> None:
    leader.cut_off(1)
    leader.cut_off(2)

    assert leader.write(3) is REFUSED
    assert leader.write(1) is ACCEPTED
    assert leader.write(2) is ACCEPTED
    assert leader.write(3) is ACCEPTED


def test_a_gap_with_another_reason_is_reported(leader: Leader) -> None:
    assert leader.write(5) is GAP

    leader.cut_off(3)
    assert leader.write(2) is GAP, "it comes before the refused batch"
    assert leader.write(0, producer=8) is ACCEPTED
    assert leader.write(5, producer=8) is GAP, "another producer"
    assert leader.write(5, epoch=1) is GAP, "another epoch"


def test_f44_a_refusal_is_remembered_however_long_the_next_batch_is_delayed(
    leader: Leader,
) -> None:
    leader.cut_off(1)
    leader.wait(60_000)

    assert leader.write(2) is REFUSED


def test_f44_a_retry_that_is_refused_again_is_followed_by_its_successors(leader: Leader) -> None:
    leader.cut_off(1)
    assert leader.write(2) is REFUSED
    assert leader.write(3) is REFUSED

    leader.cut_off(1)
    assert leader.write(2) is REFUSED
    assert leader.write(3) is REFUSED


def test_f44_the_second_batch_of_a_new_producer_does_not_overtake_its_first(
    leader: Leader,
) -> None:
    leader.cut_off(0, producer=9)

    assert leader.write(1, producer=9) is REFUSED
    assert leader.write(2, producer=9) is REFUSED
    assert leader.write(0, producer=9) is ACCEPTED
    assert leader.write(1, producer=9) is ACCEPTED


def test_a_batch_that_comes_again_without_its_predecessor_learns_of_the_gap(
    leader: Leader,
) -> None:
    leader.cut_off(1)
    assert leader.write(2) is REFUSED
    assert leader.write(3) is REFUSED

    assert leader.write(2) is GAP


@pytest.mark.parametrize(
    "error",
    [
        ErrorCode.not_leader_or_follower,
        ErrorCode.not_enough_replicas,
        ErrorCode.kafka_storage_error,
        ErrorCode.unknown_topic_or_partition,
        ErrorCode.request_timed_out,
    ],
)
def test_f44_every_error_after_which_a_client_retries_counts(error: ErrorCode) -> None:
    refused = RefusedSequences()
    refused.judge(ORDERS, numbered(1), (AppendResult(error), -1))

    assert refused.judge(ORDERS, numbered(2), OUT_OF_ORDER)[0].error is REFUSED


def test_an_error_after_which_no_client_retries_does_not_count() -> None:
    refused = RefusedSequences()
    refused.judge(ORDERS, numbered(1), (AppendResult(ErrorCode.invalid_record), -1))

    assert refused.judge(ORDERS, numbered(2), OUT_OF_ORDER) == OUT_OF_ORDER


def test_f44_the_batch_behind_a_truncated_one_is_refused() -> None:
    refused = RefusedSequences()
    refused.truncated(ORDERS, [ProducerSequence(7, 0, 1)])

    assert refused.judge(ORDERS, numbered(1), OUT_OF_ORDER) == OUT_OF_ORDER
    assert refused.judge(ORDERS, numbered(2), OUT_OF_ORDER)[0].error is REFUSED


def test_only_the_latest_thousand_producers_are_remembered() -> None:
    refused = RefusedSequences()
    refused.truncated(ORDERS, [ProducerSequence(7, 0, 1)])
    refused.truncated(ORDERS, [ProducerSequence(id, 0, 1) for id in range(100, 1_100)])

    assert refused.judge(ORDERS, numbered(2), OUT_OF_ORDER) == OUT_OF_ORDER
