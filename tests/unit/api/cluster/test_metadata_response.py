"""Our own encoder of Metadata responses gives the same bytes as kio's, in every version."""

from datetime import timedelta
from io import BytesIO
from uuid import UUID

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from kio.schema.metadata.v13 import response as v13
from kio.serial import entity_writer

from tidelog.api.cluster.metadata_response import (
    MetadataRows,
    PartitionRow,
    TopicRow,
    encode_metadata,
)
from tidelog.api.view import NodeAddress
from tidelog.model.errors import ErrorCode
from tidelog.protocol.messages.canonical import MetadataResponse
from tidelog.protocol.messages.schema import response_class
from tidelog.protocol.messages.versions import lower

i32 = st.integers(-(2**31), 2**31 - 1)
names = st.text(max_size=300)
errors = st.sampled_from(ErrorCode)
replicas = st.lists(i32, max_size=5).map(tuple)
partitions = st.builds(PartitionRow, errors, i32, i32, i32, replicas, replicas, replicas)
topics = st.builds(
    TopicRow,
    errors,
    st.none() | names,
    st.uuids(),
    st.booleans(),
    st.lists(partitions, max_size=4).map(tuple),
    i32,
)
many_partitions = st.builds(
    TopicRow,
    errors,
    names,
    st.uuids(),
    st.booleans(),
    st.just(tuple(PartitionRow(ErrorCode.none, n, 1, 0, (1,), (1,), ()) for n in range(130))),
    i32,
)
answers = st.builds(
    MetadataRows,
    st.lists(st.builds(NodeAddress, i32, names, i32, st.none() | names), max_size=3).map(tuple),
    st.none() | names,
    i32,
    st.lists(topics | many_partitions, max_size=3).map(tuple),
    i32,
    errors,
)


def as_message(rows: MetadataRows) -> MetadataResponse:
    return MetadataResponse(
        throttle_time=timedelta(0),
        brokers=tuple(
            v13.MetadataResponseBroker(node_id=n.id, host=n.host, port=n.port, rack=n.rack)
            for n in rows.brokers
        ),
        cluster_id=rows.cluster_id,
        controller_id=rows.controller_id,
        topics=tuple(
            v13.MetadataResponseTopic(
                error_code=topic.error,
                name=topic.name,
                topic_id=None if topic.topic_id == UUID(int=0) else topic.topic_id,
                is_internal=topic.is_internal,
                partitions=tuple(
                    v13.MetadataResponsePartition(
                        error_code=row.error,
                        partition_index=row.partition,
                        leader_id=row.leader,
                        leader_epoch=row.leader_epoch,
                        replica_nodes=row.replicas,
                        isr_nodes=row.isr,
                        offline_replicas=row.offline_replicas,
                    )
                    for row in topic.partitions
                ),
                topic_authorized_operations=topic.authorized_operations,
            )
            for topic in rows.topics
        ),
        cluster_authorized_operations=rows.cluster_authorized_operations,
        error_code=rows.error,
    )


@pytest.mark.parametrize("version", range(14))
@settings(max_examples=50, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(rows=answers)
def test_bytes_are_those_of_kio(version: int, rows: MetadataRows):
    cls = response_class(3, version)
    expected = BytesIO()
    entity_writer(cls)(expected, lower(as_message(rows), cls))

    assert encode_metadata(rows, version) == expected.getvalue()
