"""The bytes of share groups in `__consumer_offsets` equal those of Kafka 4.3's own classes."""

from typing import Any
from uuid import UUID

import pytest

from tidelog.coordination.groups.share import share_group_records as records
from tidelog.coordination.groups.share.share_group_records import KEY_SCHEMAS, VALUE_SCHEMAS

T = UUID("01020304-0506-0708-090a-0b0c0d0e0f10")
ID = "0102030405060708090a0b0c0d0e0f10"
ASSIGNED = (records.AssignedShareTopic(T, (0, 1)),)

KAFKA = [
    (
        records.ShareGroupMemberMetadataKey("g", "m"),
        "000a00016700016d",
        records.ShareGroupMemberMetadataValue(
            rack_id=None, client_id="c", client_host="/h", subscribed_topic_names=("t", "u")
        ),
        "0000000263032f68030274027500",
    ),
    (
        records.ShareGroupMetadataKey("g"),
        "000b000167",
        records.ShareGroupMetadataValue(epoch=3, metadata_hash=77),
        "000000000003000000000000004d00",
    ),
    (
        records.ShareGroupTargetAssignmentMetadataKey("g"),
        "000c000167",
        records.ShareGroupTargetAssignmentMetadataValue(assignment_epoch=3, assignment_timestamp=9),
        "0000000000030100080000000000000009",
    ),
    (
        records.ShareGroupTargetAssignmentMemberKey("g", "m"),
        "000d00016700016d",
        records.ShareGroupTargetAssignmentMemberValue(ASSIGNED),
        f"000002{ID}0300000000000000010000",
    ),
    (
        records.ShareGroupCurrentMemberAssignmentKey("g", "m"),
        "000e00016700016d",
        records.ShareGroupCurrentMemberAssignmentValue(
            member_epoch=3, previous_member_epoch=2, assigned_partitions=ASSIGNED
        ),
        f"000000000003000000020002{ID}0300000000000000010000",
    ),
    (
        records.ShareGroupStatePartitionMetadataKey("g"),
        "000f000167",
        records.ShareGroupStatePartitionMetadataValue(
            initializing_topics=(records.ShareTopicState(T, "t", (2,)),),
            initialized_topics=(records.ShareTopicState(T, "t", (0, 1)),),
            deleting_topics=(records.DeletingShareTopic(T, "t"),),
        ),
        f"000002{ID}027402000000020002{ID}02740300000000000000010002{ID}02740000",
    ),
]


@pytest.mark.parametrize(("key", "key_bytes", "value", "value_bytes"), KAFKA)
def test_records_have_kafkas_bytes(key: Any, key_bytes: str, value: Any, value_bytes: str) -> None:
    number = int(key_bytes[:4], 16)
    entity, key_schema = KEY_SCHEMAS[number]
    schema = VALUE_SCHEMAS[entity]

    assert key_schema.encode(key, prefix=number, version=0).hex() == key_bytes
    assert schema.encode(value, prefix=0, version=0).hex() == value_bytes
    assert key_schema.decode(bytes.fromhex(key_bytes), 2, version=0) == key
    assert schema.decode(bytes.fromhex(value_bytes), 2, version=0) == value
