"""`tidelog up`: one line when it takes writes, a file that says who runs, an end in order."""

import os
import signal
import socket
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka import Producer
from tests.clients.systems import PATIENCE
from tests.cluster.foreground import TIDELOG, Up, await_seen
from tests.cluster.ports import first_free_port


@pytest.fixture
def up(tmp_path: Path) -> Iterator[Up]:
    started = Up(tmp_path / "data", first_free_port(1))
    yield started
    started.end()


def acknowledged(bootstrap: str, value: str) -> int:
    """The offset of one record, written with acks=all."""
    offsets: list[int | None] = []
    producer = Producer({"bootstrap.servers": bootstrap, "acks": "all", "log_level": 0})
    producer.produce("t", value, on_delivery=lambda _, message: offsets.append(message.offset()))
    assert producer.flush(PATIENCE) == 0
    (offset,) = offsets
    assert offset is not None
    return offset


def test_announces_itself_once_it_takes_writes_and_goes_on_where_it_ended(up: Up) -> None:
    assert up.bootstrap() == f"127.0.0.1:{up.port}"
    (node,) = up.nodes()
    assert node["id"] == 1
    assert node["ports"]["broker"] == up.port
    os.kill(node["pid"], 0)
    assert acknowledged(f"127.0.0.1:{up.port}", "first") == 0

    assert up.end() == 0
    assert not up.state.exists()
    with pytest.raises(ProcessLookupError):
        os.kill(node["pid"], 0)

    again = Up(up.directory, up.port)
    try:
        assert acknowledged(again.bootstrap(), "second") == 1
    finally:
        assert again.end(signal.SIGTERM) == 0


def test_a_killed_node_is_started_again_and_has_its_new_pid_noted(up: Up) -> None:
    bootstrap = up.bootstrap()
    assert acknowledged(bootstrap, "first") == 0
    (before,) = up.nodes()
    os.kill(before["pid"], signal.SIGKILL)
    assert acknowledged(bootstrap, "second") == 1
    await_seen(lambda: up.nodes()[0]["pid"], lambda pid: pid not in (None, before["pid"]))


def test_three_brokers_listen_on_three_ports_and_outlive_one_of_them(tmp_path: Path) -> None:
    up = Up(tmp_path / "data", first_free_port(3), brokers=3)
    try:
        ports = [up.port, up.port + 1, up.port + 2]
        bootstrap = up.bootstrap()
        assert bootstrap == ",".join(f"127.0.0.1:{port}" for port in ports)
        nodes = up.nodes()
        assert [node["id"] for node in nodes] == [1, 2, 3]
        assert [node["ports"]["broker"] for node in nodes] == ports
        assert acknowledged(bootstrap, "first") == 0
        os.kill(nodes[1]["pid"], signal.SIGKILL)
        assert acknowledged(bootstrap, "second") == 1
    finally:
        assert up.end() == 0


def refused(*arguments: str) -> str:
    done = subprocess.run(
        [*TIDELOG, "up", *arguments],
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
    )
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.count("\n") == 1
    return done.stderr


def test_a_second_up_on_the_same_directory_says_that_it_runs(up: Up) -> None:
    bootstrap = up.bootstrap()
    assert refused("--dir", str(up.directory)) == (
        f"tidelog: a cluster is running in {up.directory} already (bootstrap {bootstrap}).\n"
    )


def test_a_port_in_use_is_one_sentence(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        assert refused("--dir", str(tmp_path), "--port", str(port)) == (
            f"tidelog: port {port} on 127.0.0.1 is in use; choose others with --port.\n"
        )


def test_a_bad_setting_is_one_sentence(tmp_path: Path) -> None:
    where = ("--dir", str(tmp_path), "--port", str(first_free_port(1)), "--brokers", "1")
    assert "num.partitions: 'many' is not usable" in refused(
        *where, "--override", "num.partitions=many"
    )
