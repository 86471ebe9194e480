"""If a broker that does not lead refuses a batch, the next batch gets the same error (F44)."""

import pytest
from tests.sim.messages import create_topic, produce_to
from tests.unit.log.support import batch
from tests.unit.node.bench import Bench

from tidelog.model.errors import ErrorCode
from tidelog.node.partitions.partitions import Partitions
from tidelog.node.partitions.refused_sequences import REMEMBERED_MS

REFUSED, GAP = ErrorCode.not_leader_or_follower, ErrorCode.out_of_order_sequence_number
ACCEPTED = ErrorCode.none


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

    def cut_off(self, sequence: int) -> None:
        """Let the node refuse one batch, because it has lost contact with the other nodes."""
        self._is_cut_off = True
        assert self.write(sequence) is REFUSED
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

    assert leader.write(2) is REFUSED


def test_a_gap_with_another_reason_is_reported(leader: Leader) -> None:
    assert leader.write(5) is GAP

    leader.cut_off(3)
    assert leader.write(2) is GAP, "it comes before the refused batch"
    assert leader.write(0, producer=8) is ACCEPTED
    assert leader.write(5, producer=8) is GAP, "another producer"
    assert leader.write(5, epoch=1) is GAP, "another epoch"


def test_a_refusal_is_forgotten_after_a_while(leader: Leader) -> None:
    leader.cut_off(1)
    leader.wait(REMEMBERED_MS + 1)

    assert leader.write(2) is GAP
