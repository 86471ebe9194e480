"""The configuration that a replica's log uses."""

from tests.unit.controller.support import SETTINGS, cluster, partition

from tidelog.controller.image.image import BROKER_RESOURCE, CLUSTER_DEFAULT, TOPIC_RESOURCE
from tidelog.node.partitions.topic_config import TopicConfigs


def test_internal_segment_bytes_goes_before_segment_bytes() -> None:
    small = {"internal.segment.bytes": "4096", "segment.bytes": "2000000"}
    image = cluster(1, {"t": partition((1,))}, {(TOPIC_RESOURCE, "t"): small})

    assert TopicConfigs(SETTINGS).of(image, "t").log.segment_bytes == 4096
    assert TopicConfigs(SETTINGS).of(image, "other").log.segment_bytes == 1_073_741_824


def test_the_expiration_of_producer_ids_can_change_at_run_time() -> None:
    configs = TopicConfigs(SETTINGS)
    short = {(TOPIC_RESOURCE, "t"): {"retention.ms": "1"}}
    partitions = {"t": partition((1,)), "u": partition((1,))}
    assert (
        configs.of(cluster(1, partitions, short), "t").log.producer_id_expiration_ms == 86_400_000
    )

    for resource in (CLUSTER_DEFAULT, str(SETTINGS.node_id)):
        dynamic = {(BROKER_RESOURCE, resource): {"producer.id.expiration.ms": "5000"}}
        image = cluster(1, partitions, {**short, **dynamic})
        for topic in ("t", "u"):
            assert configs.of(image, topic).log.producer_id_expiration_ms == 5_000
