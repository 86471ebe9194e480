"""A topic with compression.type stores every batch in that codec, on all replicas."""

from tests.sim.keyed_producer import KeyedProducer, check_last_values, log_of
from tests.sim.replication import isr_is_full, make_topic
from tests.sim.talk import await_true, running

from tidelog.log.results import ReadResult
from tidelog.protocol.records.batch import iterate


def test_every_batch_is_stored_in_the_codec_of_the_topic() -> None:
    cluster = running(seed=3)
    make_topic(cluster, compression_type="gzip", cleanup_policy="compact")
    producer = KeyedProducer(cluster)
    await_true(cluster, lambda: producer.acknowledged > 50)
    producer.stop()
    await_true(cluster, lambda: producer.is_idle and isr_is_full(cluster))
    cluster.world.run(1_000)
    check_last_values(cluster, producer, (1, 2, 3))
    for node in (1, 2, 3):
        log = log_of(cluster, node)
        result = log.read(0, 1 << 20, log.log_end_offset, at_least_one=True)
        assert isinstance(result, ReadResult)
        assert result.slice is not None
        content = result.slice.file.read(result.slice.position, result.slice.length)
        assert {header.compression for _, header in iterate(content)} == {1}
