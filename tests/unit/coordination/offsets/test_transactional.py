"""TxnOffsetCommit: offsets are visible with the commit marker of their transaction, or never."""

from typing import Any

import pytest
from kio.schema.txn_offset_commit.v5.request import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
)
from tests.unit.coordination.group_client import GROUP, CoordinatorUnderTest

from tidelog.coordination.offsets.offsets import OffsetStore
from tidelog.coordination.runtime.decision import ProducerIdAndEpoch
from tidelog.model.errors import ErrorCode
from tidelog.sim.rules import Replacement, Rules, applied_rules

PRODUCER = ProducerIdAndEpoch(1000, 4)


def txn_commit(
    coordinator: CoordinatorUnderTest,
    offset: int,
    *,
    member: str = "",
    generation: int = -1,
    metadata: str | None = None,
) -> ErrorCode:
    request = TxnOffsetCommitRequest(
        transactional_id="t",
        group_id=GROUP,
        producer_id=PRODUCER.producer_id,
        producer_epoch=PRODUCER.epoch,
        generation_id=generation,
        member_id=member,
        topics=(
            TxnOffsetCommitRequestTopic(
                name="orders",
                partitions=(
                    TxnOffsetCommitRequestPartition(
                        partition_index=0, committed_offset=offset, committed_metadata=metadata
                    ),
                ),
            ),
        ),
    )
    answer: Any = coordinator.answers[coordinator.ask(request, 5)]
    error: ErrorCode = answer.topics[0].partitions[0].error_code
    return error


def end(coordinator: CoordinatorUnderTest, *, committed: bool) -> None:
    # A marker of transaction version 2 has the next epoch.
    producer = ProducerIdAndEpoch(PRODUCER.producer_id, PRODUCER.epoch + 1)
    last = len(coordinator.log)
    coordinator.shard.transaction_ended(producer, last, committed=committed)


def offsets_follow_the_outcome() -> None:
    coordinator = CoordinatorUnderTest()
    coordinator.commit({("orders", 0): 3})
    assert txn_commit(coordinator, 7) is ErrorCode.none
    assert coordinator.committed() == {("orders", 0): 3}
    end(coordinator, committed=False)
    assert coordinator.committed() == {("orders", 0): 3}
    assert txn_commit(coordinator, 8) is ErrorCode.none
    end(coordinator, committed=True)
    assert coordinator.committed() == {("orders", 0): 8}


def test_f76_offsets_are_visible_with_the_commit_and_never_with_an_abort() -> None:
    offsets_follow_the_outcome()


def test_f76_offsets_that_are_exposed_before_the_marker_are_noticed() -> None:
    def add_pending(self: OffsetStore, producer: Any, key: Any, value: Any) -> None:
        self.apply(key, value)

    rule = Replacement("tidelog.coordination.offsets.offsets:OffsetStore.add_pending", add_pending)
    with applied_rules(Rules("wrong", (rule,))), pytest.raises(AssertionError):
        offsets_follow_the_outcome()


def test_an_older_producer_names_no_member() -> None:
    coordinator = CoordinatorUnderTest()
    coordinator.stable_group(1)
    assert txn_commit(coordinator, 7) is ErrorCode.none


def test_f76_a_member_that_lost_its_partitions_is_fenced() -> None:
    coordinator = CoordinatorUnderTest()
    [member] = coordinator.stable_group(1)
    assert txn_commit(coordinator, 7, member=member, generation=1) is ErrorCode.none
    old = txn_commit(coordinator, 7, member=member, generation=0)
    assert old is ErrorCode.illegal_generation
    unknown = txn_commit(coordinator, 7, member="zombie", generation=1)
    assert unknown is ErrorCode.unknown_member_id


def test_a_member_of_a_group_that_does_not_exist() -> None:
    error = txn_commit(CoordinatorUnderTest(), 7, member="m", generation=3)
    assert error is ErrorCode.illegal_generation


def test_metadata_is_limited_as_in_a_plain_commit() -> None:
    error = txn_commit(CoordinatorUnderTest(), 7, metadata="x" * 5000)
    assert error is ErrorCode.offset_metadata_too_large
