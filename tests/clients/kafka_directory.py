"""Makes log directories with Apache Kafka, for our log engine to open.

`python -m tests.clients.kafka_directory JARS OUT` wrote the files in tests/unit/log/data.
"""

import json
import shutil
import sys
import tempfile
from pathlib import Path

from confluent_kafka import TopicPartition
from tests.clients.librdkafka import consumer_of, create, poll, producer_of
from tests.clients.samples import BASE_TIME, CODECS
from tests.clients.schema import Schemas
from tests.clients.systems import PATIENCE, ApacheKafka

TOPIC = "orders"
PER_CODEC = 12
SEGMENT_MS = 10_000
CHECKPOINTS = (
    "recovery-point-offset-checkpoint",
    "replication-offset-checkpoint",
    "log-start-offset-checkpoint",
    "meta.properties",
    ".kafka_cleanshutdown",
)


def fill(broker: ApacheKafka) -> None:
    """Write records with every codec, and one committed and one aborted transaction."""
    create(
        broker,
        TOPIC,
        segment_ms=SEGMENT_MS,
        segment_index_bytes=1_200,
        index_interval_bytes=200,
        retention_ms=-1,
    )
    for number, codec in enumerate(CODECS):
        producer = producer_of(
            broker, compression_type=codec, enable_idempotence=True, linger_ms=50
        )
        for record in range(PER_CODEC):
            time = BASE_TIME + number * 7_000 + record * 10
            value = f"{codec} {record} ".encode() * 8
            producer.produce(TOPIC, value, f"{record}".encode(), 0, timestamp=time)
            if record % 4 == 3:
                assert producer.flush(PATIENCE) == 0
    for name, ends_well in (("commits", True), ("aborts", False)):
        producer = producer_of(broker, transactional_id=name, linger_ms=50)
        producer.init_transactions(PATIENCE)
        producer.begin_transaction()
        for record in range(3):
            time = BASE_TIME + 40_000 + record
            producer.produce(TOPIC, name.encode(), f"{record}".encode(), 0, timestamp=time)
        assert producer.flush(PATIENCE) == 0
        if ends_well:
            producer.commit_transaction(PATIENCE)
        else:
            producer.abort_transaction(PATIENCE)


def seen(broker: ApacheKafka, isolation: str, count: int) -> list[list[object]]:
    """[offset, timestamp, key, value] of each record that a consumer receives."""
    with consumer_of(broker, isolation_level=isolation) as consumer:
        consumer.assign([TopicPartition(TOPIC, 0, 0)])
        return [
            [m.offset(), m.timestamp()[1], text(m.key()), text(m.value())]
            for m in poll(consumer, count)
        ]


def text(content: bytes | str | None) -> str:
    assert isinstance(content, bytes)
    return content.decode()


def copy(data: Path, to: Path) -> None:
    """Copy the topic's partition and the checkpoint files of the directory."""
    shutil.rmtree(to, ignore_errors=True)
    to.mkdir(parents=True)
    for name in CHECKPOINTS:
        if (data / name).exists():
            shutil.copy(data / name, to / name)
    shutil.copytree(data / f"{TOPIC}-0", to / f"{TOPIC}-0")


def make(broker: ApacheKafka, out: Path) -> None:
    """Write the directories `killed` and `stopped`, and the records that consumers received."""
    fill(broker)
    everything = len(CODECS) * PER_CODEC
    expected = {
        "read_uncommitted": seen(broker, "read_uncommitted", everything + 6),
        "read_committed": seen(broker, "read_committed", everything + 3),
    }
    broker.kill()
    copy(broker.data, out / "killed")
    broker.start()
    assert broker.stop() in (0, 143)
    copy(broker.data, out / "stopped")
    (out / "expected.json").write_text(json.dumps(expected, indent=0) + "\n")


def main() -> None:
    jars, out = map(Path, sys.argv[1:])
    with tempfile.TemporaryDirectory() as directory:
        broker = ApacheKafka(Path(directory), Schemas(jars))
        broker.format()
        broker.start()
        try:
            make(broker, out)
        finally:
            broker.kill()


if __name__ == "__main__":
    main()
