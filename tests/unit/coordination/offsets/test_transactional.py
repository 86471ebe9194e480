"""TxnOffsetCommit: offsets are visible with the commit marker of their transaction, or never."""

from typing import Any

import pytest
from kio.schema.txn_offset_commit.v5.request import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
)
from tests.unit.coordination.group_client import GROUP, CoordinatorUnderTest
from tests.unit.coordination.groups.consumer.consumer_group_shard import (
    ConsumerGroupShard,
    FakeMember,
)

from tidelog.coordination.offsets.offsets import OffsetStore
from tidelog.coordination.runtime.decision import ProducerIdAndEpoch
from tidelog.model.errors import ErrorCode
from tidelog.sim.rules import Replacement, Rules, applied_rules

PRODUCER = ProducerIdAndEpoch(1000, 4)


def txn_request(
    offset: int,
    *,
    member: str = "",
    generation: int = -1,
    metadata: str | None = None,
    producer: ProducerIdAndEpoch = PRODUCER,
) -> TxnOffsetCommitRequest:
    return TxnOffsetCommitRequest(
        transactional_id="t",
        group_id=GROUP,
        producer_id=producer.producer_id,
        producer_epoch=producer.epoch,
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


def txn_commit(coordinator: CoordinatorUnderTest, offset: int, **fields: Any) -> ErrorCode:
    answer = coordinator.answers[coordinator.ask(txn_request(offset, **fields), 5)]
    return error_in(answer)


def error_in(answer: Any) -> ErrorCode:
    error: ErrorCode = answer.topics[0].partitions[0].error_code
    return error


def end(
    coordinator: CoordinatorUnderTest, *, committed: bool, of: ProducerIdAndEpoch = PRODUCER
) -> None:
    # A marker of transaction version 2 has the next epoch.
    producer = ProducerIdAndEpoch(of.producer_id, of.epoch + 1)
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
    def add_pending(self: OffsetStore, producer: Any, key: Any, value: Any, position: Any) -> None:
        self.apply(key, value, position)

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


def test_f66_an_older_offset_of_a_transaction_does_not_replace_a_newer_commit() -> None:
    coordinator = CoordinatorUnderTest()
    assert txn_commit(coordinator, 10) is ErrorCode.none
    coordinator.commit({("orders", 0): 20})
    end(coordinator, committed=True)
    assert coordinator.committed() == {("orders", 0): 20}


def test_f66_the_newest_record_of_two_transactions_stays() -> None:
    first, second = PRODUCER, ProducerIdAndEpoch(2000, 0)
    coordinator = CoordinatorUnderTest()
    assert txn_commit(coordinator, 10, producer=first) is ErrorCode.none
    assert txn_commit(coordinator, 20, producer=second) is ErrorCode.none
    end(coordinator, committed=True, of=second)
    end(coordinator, committed=True, of=first)
    assert coordinator.committed() == {("orders", 0): 20}


def test_a_newer_transaction_replaces_an_older_one() -> None:
    first, second = PRODUCER, ProducerIdAndEpoch(2000, 0)
    coordinator = CoordinatorUnderTest()
    assert txn_commit(coordinator, 10, producer=first) is ErrorCode.none
    assert txn_commit(coordinator, 20, producer=second) is ErrorCode.none
    end(coordinator, committed=True, of=first)
    assert coordinator.committed() == {("orders", 0): 10}
    end(coordinator, committed=True, of=second)
    assert coordinator.committed() == {("orders", 0): 20}


# -- Members with the consumer protocol ------------------------------------------------------------


def consumer_member(partitions: int) -> tuple[ConsumerGroupShard, FakeMember]:
    """A group whose only member owns all partitions of a topic."""
    shard, member = ConsumerGroupShard(), FakeMember("A")
    shard.put_topic("orders", partitions)
    shard.join(member, "orders")
    shard.settle(member)
    return shard, member


def test_a_member_with_the_consumer_protocol_commits_in_a_transaction() -> None:
    shard, member = consumer_member(1)
    for version in range(3, 6):
        request = txn_request(7, member="A", generation=member.epoch)
        assert error_in(shard.ask(request, version=version)) is ErrorCode.none
    unknown = txn_request(7, member="zombie", generation=member.epoch)
    assert error_in(shard.ask(unknown, version=5)) is ErrorCode.unknown_member_id
    newer = txn_request(7, member="A", generation=member.epoch + 1)
    assert error_in(shard.ask(newer, version=5)) is ErrorCode.illegal_generation


def test_f66_a_former_owner_does_not_commit_in_a_transaction() -> None:
    shard, former = consumer_member(1)
    old_epoch = former.epoch
    new = FakeMember("B")
    shard.join(new, "orders")
    shard.beat(former, topic_partitions=(), subscribed_topic_names=())
    former.owned = {}
    shard.settle(former, new)
    assert sum(len(one) for one in new.owned.values()) == 1
    late = txn_request(7, member="A", generation=old_epoch)
    assert error_in(shard.ask(late, version=5)) is ErrorCode.illegal_generation
    owner = txn_request(9, member="B", generation=new.epoch)
    assert error_in(shard.ask(owner, version=5)) is ErrorCode.none
