"""A node process reports a startup error in one sentence, and shuts down on a signal."""

import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from uuid import UUID

import pytest
from tests.clients.systems import HOST, free_block

from tidelog.log.checkpoints.checkpoints import MetaProperties, write_meta_properties
from tidelog.runtime.files.disk import RealDisk


class Config:
    """A server.properties on free ports, and its log directory."""

    def __init__(self, directory: Path) -> None:
        self.path = directory / "server.properties"
        self.logs = directory / "logs"
        self._ports = free_block()
        self.port, controller = self._ports.first, self._ports.first + 1
        self._held = [socket.create_server((HOST, port)) for port in (self.port, controller)]
        self.path.write_text(
            "process.roles=broker,controller\n"
            "node.id=1\n"
            f"controller.quorum.voters=1@127.0.0.1:{controller}\n"
            f"listeners=PLAINTEXT://127.0.0.1:{self.port},CONTROLLER://127.0.0.1:{controller}\n"
            "listener.security.protocol.map=PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT\n"
            "controller.listener.names=CONTROLLER\n"
            f"log.dirs={self.logs}\n"
        )

    def format(self, node_id: int = 1) -> None:
        meta = MetaProperties("Y2x1c3RlcmlkMTIzNDU2Nw", node_id, UUID(int=7, version=4))
        write_meta_properties(RealDisk(self.logs), meta)

    def release_ports(self) -> None:
        for sock in self._held:
            sock.close()


@pytest.fixture
def config(tmp_path: Path) -> Iterator[Config]:
    made = Config(tmp_path)
    yield made
    made.release_ports()


def start(config: Config) -> "subprocess.Popen[str]":
    command = [sys.executable, "-P", "-m", "tidelog.runtime", "--config", str(config.path)]
    return subprocess.Popen(command, stderr=subprocess.PIPE, text=True)


def refusal(config: Config) -> str:
    """The error message of a failed start, which must be one line with exit status 1."""
    _, said = (process := start(config)).communicate()
    assert process.returncode == 1
    assert said.count("\n") == 1
    return said


def await_ready(process: "subprocess.Popen[str]") -> None:
    assert process.stderr is not None
    for line in process.stderr:
        if line.endswith(" ready\n"):
            return
    raise AssertionError("it ended before it served")


@pytest.fixture
def running(config: Config) -> Iterator["subprocess.Popen[str]"]:
    config.format()
    config.release_ports()
    process = start(config)
    await_ready(process)
    yield process
    process.kill()
    process.communicate()


def test_a_port_in_use_is_told(config: Config) -> None:
    config.format()
    expected = f"port {config.port} on 127.0.0.1 for PLAINTEXT: Address already in use."
    assert refusal(config) == f"tidelog: cannot listen on {expected}\n"


def test_one_line_names_the_keys_without_effect(config: Config) -> None:
    with config.path.open("a") as file:
        file.write(
            "num.io.threads=8\nremote.fetch.max.wait.ms=1\nbackground.threads=10\nmy.key=1\n"
        )
    _, said = start(config).communicate()

    warning, info, _ = said.splitlines()
    assert warning.endswith(" WARNING my.key: this key is not known and has no effect")
    assert info.endswith(
        " INFO these keys of the configuration have no effect here: "
        "background.threads, num.io.threads; not supported yet: remote.fetch.max.wait.ms"
    )


def test_a_directory_that_is_not_formatted_is_told(config: Config) -> None:
    config.release_ports()
    assert "meta.properties is missing" in refusal(config)


def test_a_directory_of_another_node_is_told(config: Config) -> None:
    config.format(node_id=2)
    config.release_ports()
    assert "belongs to node 2, not to node 1" in refusal(config)


def test_a_directory_that_cannot_be_used_is_told(config: Config) -> None:
    config.logs.write_text("this is a file")
    assert "cannot be used: File exists" in refusal(config)


def test_a_bad_setting_is_told(config: Config) -> None:
    with config.path.open("a") as file:
        file.write("num.partitions=many\n")
    assert f"{config.path}: num.partitions: " in refusal(config)


def test_a_directory_in_use_is_told(config: Config, running: "subprocess.Popen[str]") -> None:
    assert f"{config.logs} is in use by another process" in refusal(config)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_is_a_clean_shutdown(
    config: Config, running: "subprocess.Popen[str]", number: signal.Signals
) -> None:
    assert not (config.logs / ".kafka_cleanshutdown").exists()
    running.send_signal(number)
    assert running.wait() == 0
    assert (config.logs / ".kafka_cleanshutdown").exists()


def test_a_stopped_node_starts_again(config: Config, running: "subprocess.Popen[str]") -> None:
    running.terminate()
    running.wait()
    again = start(config)
    await_ready(again)
    again.terminate()
    again.communicate()
    assert again.returncode == 0
