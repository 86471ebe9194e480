"""If the disk is full, the broker refuses writes with Kafka's error, or stops as Kafka does.

No acknowledged record is lost, and the broker serves clients again when there is space.
"""

import os
import resource
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from confluent_kafka import KafkaError
from tests.clients.librdkafka import create, producer_of, read_messages, send_values, watermarks
from tests.clients.systems import Broker

FREE = 4 << 20
SpaceRunsOut = Callable[[Broker], Callable[[], None]]
"""A function that fills a running broker's disk, and returns a function that frees the space."""


@contextmanager
def full_tmpfs(directory: Path) -> Iterator[tuple[Path, SpaceRunsOut]]:
    """A small file system, which `run_out` fills with a file."""
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=256m", "tmpfs", directory], check=True)
    ballast = directory / "ballast"

    def run_out(_broker: Broker) -> Callable[[], None]:
        room = os.statvfs(directory)
        with ballast.open("wb") as file:
            os.posix_fallocate(file.fileno(), 0, room.f_bavail * room.f_bsize - FREE)
        return ballast.unlink

    try:
        yield directory / "data", run_out
    finally:
        subprocess.run(["umount", "--lazy", directory], check=True)


@contextmanager
def file_size_limit(directory: Path) -> Iterator[tuple[Path, SpaceRunsOut]]:
    """A limit on the size of files; setting it needs no privileges."""

    def run_out(broker: Broker) -> Callable[[], None]:
        _soft, hard = resource.prlimit(broker.pid, resource.RLIMIT_FSIZE)
        resource.prlimit(broker.pid, resource.RLIMIT_FSIZE, (FREE, hard))

        def give_back() -> None:
            if broker.is_alive():
                resource.prlimit(broker.pid, resource.RLIMIT_FSIZE, (hard, hard))

        return give_back

    yield directory / "data", run_out


WAYS = {"file size limit": file_size_limit}
if os.geteuid() == 0:
    WAYS["full tmpfs"] = full_tmpfs


@pytest.mark.parametrize("way", WAYS)
def test_nothing_acknowledged_is_lost_when_the_disk_is_full(
    start_broker: Callable[..., Broker], topic: str, tmp_path: Path, way: str
) -> None:
    disk = tmp_path / "disk"
    disk.mkdir()
    with WAYS[way](disk) as (data, run_out):
        broker = start_broker(data=data)
        create(broker, topic)
        create(broker, f"{topic}-other")
        send_values(producer_of(broker), f"{topic}-other", [b"before"])
        give_back = run_out(broker)
        acknowledged = write_until_full(broker, topic)
        assert acknowledged > 0
        give_back()
        if broker.is_alive():
            broker.stop()
        assert has_run_out(broker)
        broker.start()
        low, high = watermarks(broker, topic)
        assert low == 0
        assert high >= acknowledged
        values = [message.value() for message in read_messages(broker, topic, acknowledged)]
        assert values == [numbered(n) for n in range(acknowledged)]
        send_values(producer_of(broker), topic, [b"room again"])
        assert read_messages(broker, f"{topic}-other", 1)[0].value() == b"before"
        broker.kill()


def numbered(number: int) -> bytes:
    return f"{number:09}".encode().ljust(100_000, b".")


def has_run_out(broker: Broker) -> bool:
    """Whether the broker logged the error. A missing answer alone may be due to a slow machine."""
    said = broker.log_text()
    return "No space left" in said or "File too large" in said


def write_until_full(broker: Broker, topic: str) -> int:
    """Write one record at a time until the disk is full; return how many were acknowledged."""
    producer = producer_of(broker, acks="all", enable_idempotence=False)
    answers: list[KafkaError | None] = []
    for number in range(20 * FREE // 100_000):
        producer.produce(
            topic, numbered(number), on_delivery=lambda error, _: answers.append(error)
        )
        while len(answers) == number:
            if has_run_out(broker):
                return number
            producer.poll(0.02)
        if answers[-1] is not None:
            return number
    raise AssertionError("the disk never filled up")
