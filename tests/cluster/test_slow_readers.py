"""If clients pipeline large fetches but never read, memory stays small and others are served."""

import contextlib
import os
import socket
import struct
from pathlib import Path

from confluent_kafka import Producer
from tests.clients.librdkafka import QUIET
from tests.clients.systems import PATIENCE
from tests.cluster.foreground import await_seen, tidelog

from tidelog.testing import Cluster

READERS = 300
PIPELINED = 64
MOST_MEGABYTES = 256


def fetch(topic: bytes) -> bytes:
    """A Fetch (version 4) of all of partition 0."""
    most = 50 << 20
    head = struct.pack(">hhih", 1, 4, 7, 4) + b"slow"
    head += struct.pack(">iiiibi", -1, 500, 1, most, 0, 1)
    body = struct.pack(">h", len(topic)) + topic + struct.pack(">iiqi", 1, 0, 0, most)
    return struct.pack(">i", len(head) + len(body)) + head + body


def peak_megabytes(pid: int) -> int:
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return next(int(line.split()[1]) // 1024 for line in lines if line.startswith("VmHWM"))


def deleted_files(pid: int) -> int:
    """How many deleted files a process has open. It may close any of them during the count."""
    deleted = 0
    for descriptor in Path(f"/proc/{pid}/fd").iterdir():
        with contextlib.suppress(FileNotFoundError):
            deleted += "(deleted)" in os.readlink(descriptor)
    return deleted


def test_readers_that_never_read_hold_up_nobody_and_little_memory(tmp_path: Path) -> None:
    properties = {"log.segment.bytes": "1048576", "log.segment.delete.delay.ms": "0"}
    with Cluster(1, directory=tmp_path, properties=properties, network_faults=False) as cluster:
        pid, where = cluster.nodes[1].pid, ("--bootstrap-server", cluster.bootstrap)
        for topic in ("big", "other"):
            tidelog("topics", "--create", "--topic", topic, "--partitions", "1", *where)
        producer = Producer({"bootstrap.servers": cluster.bootstrap, **QUIET})
        for _ in range(200):
            producer.produce("big", os.urandom(100_000))
        assert producer.flush(PATIENCE) == 0
        readers = []
        for _ in range(READERS):
            reader = socket.create_connection(("127.0.0.1", cluster.port(1)))
            reader.sendall(fetch(b"big") * PIPELINED)
            readers.append(reader)
        for _ in range(20):
            producer.produce("other", b"served")
            assert producer.flush(PATIENCE) == 0
        tidelog("topics", "--delete", "--topic", "big", *where)
        for reader in readers:
            reader.close()
        await_seen(lambda: deleted_files(pid), lambda held: held == 0)
        producer.produce("other", b"served")
        assert producer.flush(PATIENCE) == 0
        assert peak_megabytes(pid) < MOST_MEGABYTES
        assert cluster.nodes[1].is_running
