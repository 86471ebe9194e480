"""The configuration that a replica's log uses."""

from tests.unit.controller.support import SETTINGS, cluster, partition

from tidelog.controller.image.image import TOPIC_RESOURCE
from tidelog.node.partitions.topic_config import TopicConfigs


def test_internal_segment_bytes_goes_before_segment_bytes() -> None:
    small = {"internal.segment.bytes": "4096", "segment.bytes": "2000000"}
    image = cluster(1, {"t": partition((1,))}, {(TOPIC_RESOURCE, "t"): small})

    assert TopicConfigs(SETTINGS).of(image, "t").log.segment_bytes == 4096
    assert TopicConfigs(SETTINGS).of(image, "other").log.segment_bytes == 1_073_741_824
