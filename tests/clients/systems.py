"""The systems under test: one broker as a process on 127.0.0.1, which a test can kill and restart.

Tidelog and Apache Kafka take the same server.properties. The same test can therefore also run
against Apache Kafka.
"""

import base64
import re
import shutil
import signal
import subprocess
import sys
import time
import uuid
from collections.abc import Mapping
from pathlib import Path

from tests.clients.schema import Schemas
from tests.clients.wire import Wire

from tidelog.clusters.free_ports import PortBlock, is_free

HOST = "127.0.0.1"
ROOT = Path(__file__).parents[2]
PATIENCE = 120
"""If a test waits longer than this many seconds, it fails. The limit is not a test of speed."""


def free_block() -> PortBlock:
    """A block of ports of which the first two are free."""
    while True:
        block = PortBlock()
        if is_free(block.first) and is_free(block.first + 1):
            return block
        block.release()


def new_cluster_id() -> str:
    # The first byte is 0, so the id begins with A. An id that begins with "-" looks like an option.
    return base64.urlsafe_b64encode(b"\0" + uuid.uuid4().bytes[1:]).decode().rstrip("=")


class Broker:
    """One broker that is also the controller, with its own data directory."""

    name: str
    logs_one_line_per_bad_peer = False

    def __init__(
        self,
        directory: Path,
        schemas: Schemas,
        properties: Mapping[str, object] | None = None,
        data: Path | None = None,
    ) -> None:
        self.directory, self.schemas = directory, schemas
        self._ports = free_block()
        self.port, self.controller_port = self._ports.first, self._ports.first + 1
        self.data = data or directory / "data"
        self.log = directory / "broker.log"
        self.config = directory / "server.properties"
        self.process: subprocess.Popen[bytes] | None = None
        directory.mkdir(parents=True, exist_ok=True)
        values = {
            "process.roles": "broker,controller",
            "node.id": 1,
            "controller.quorum.voters": f"1@{HOST}:{self.controller_port}",
            "listeners": f"PLAINTEXT://{HOST}:{self.port},CONTROLLER://{HOST}:{self.controller_port}",
            "advertised.listeners": f"PLAINTEXT://{HOST}:{self.port}",
            "controller.listener.names": "CONTROLLER",
            "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT",
            "log.dirs": self.data,
            "offsets.topic.replication.factor": 1,
            "offsets.topic.num.partitions": 3,
            "transaction.state.log.replication.factor": 1,
            "transaction.state.log.min.isr": 1,
            "share.coordinator.state.topic.replication.factor": 1,
            "share.coordinator.state.topic.min.isr": 1,
            "group.initial.rebalance.delay.ms": 0,
            # Tests write records whose timestamps are years old. Retention must not delete these
            # records.
            "log.retention.check.interval.ms": 86_400_000,
            **(properties or {}),
        }
        self.config.write_text("".join(f"{key}={value}\n" for key, value in values.items()))

    # -- what each system defines ------------------------------------------------------------------

    def format_argv(self, cluster_id: str) -> list[str]:
        raise NotImplementedError

    def serve_argv(self) -> list[str]:
        raise NotImplementedError

    # -- start and stop ----------------------------------------------------------------------------

    @property
    def address(self) -> tuple[str, int]:
        return HOST, self.port

    @property
    def bootstrap(self) -> str:
        return f"{HOST}:{self.port}"

    @property
    def pid(self) -> int:
        assert self.process is not None
        return self.process.pid

    def format(self) -> None:
        done = subprocess.run(
            self.format_argv(new_cluster_id()), capture_output=True, text=True, timeout=PATIENCE
        )
        assert done.returncode == 0, f"format failed:\n{done.stdout}\n{done.stderr}"

    def start(self) -> None:
        """Start the broker, and wait until it lists itself in Metadata."""
        self.launch()
        self.await_ready()

    def launch(self) -> None:
        """Start the broker without waiting for it."""
        assert self.process is None or self.process.poll() is not None, "it runs already"
        argv = self.serve_argv()
        if shutil.which("setpriv"):  # kill the broker when the tests end
            argv = ["setpriv", "--pdeathsig", "KILL", *argv]
        with self.log.open("ab") as out:
            self.process = subprocess.Popen(
                argv, stdout=out, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL
            )

    def await_ready(self) -> None:
        deadline = time.monotonic() + PATIENCE
        while time.monotonic() < deadline:
            assert self.process is not None
            if (status := self.process.poll()) is not None:
                raise AssertionError(f"{self.name} ended with {status}:\n{self.log_text()[-4000:]}")
            if self._is_ready():
                return
            time.sleep(0.02)
        raise AssertionError(
            f"{self.name} is not up after {PATIENCE} s:\n{self.log_text()[-4000:]}"
        )

    def _is_ready(self) -> bool:
        try:
            with self.connect(timeout=5) as wire:
                answer = wire.ask("Metadata", 5, {"topics": []})
        except OSError:
            return False
        return isinstance(answer, dict) and bool(answer["brokers"])

    def stop(self) -> int:
        """Shut the broker down cleanly, wait, and return its exit status."""
        return self._end(signal.SIGTERM)

    def kill(self) -> None:
        """Kill the broker with kill -9."""
        self._end(signal.SIGKILL)

    def _end(self, how: signal.Signals) -> int:
        if self.process is None:
            return 0
        if self.process.poll() is None:
            self.process.send_signal(how)
        try:
            return self.process.wait(PATIENCE)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
            raise AssertionError(
                f"{self.name} did not end; its log:\n{self.log_text()[-4000:]}"
            ) from None

    def restart(self) -> None:
        self.stop()
        self.start()

    def connect(self, timeout: float = PATIENCE) -> Wire:
        return Wire(self.address, self.schemas, timeout)

    # -- the state of the process ------------------------------------------------------------------

    def log_text(self) -> str:
        return self.log.read_text(errors="replace") if self.log.exists() else ""

    def rss_mib(self) -> float:
        """Resident memory, in MiB."""
        text = Path(f"/proc/{self.pid}/status").read_text()
        found = re.search(r"^VmRSS:\s+(\d+) kB", text, re.M)
        assert found is not None
        return int(found[1]) / 1024

    def open_files(self) -> int:
        return len(list(Path(f"/proc/{self.pid}/fd").iterdir()))

    def is_alive(self) -> bool:
        return self.process is not None and self.process.poll() is None


class Tidelog(Broker):
    name = "tidelog"
    logs_one_line_per_bad_peer = True

    def format_argv(self, cluster_id: str) -> list[str]:
        command = [sys.executable, "-m", "tidelog.cli.main", "format"]
        return [*command, "--cluster-id", cluster_id, "--config", str(self.config)]

    def serve_argv(self) -> list[str]:
        return [sys.executable, "-m", "tidelog.cli.main", "serve", "--config", str(self.config)]


class ApacheKafka(Broker):
    name = "kafka"

    # One compiler and a small heap, because a quick start matters more than speed.
    JAVA = ("java", "-Xmx512m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Xshare:auto")

    def java(self, main: str, *args: str) -> list[str]:
        return [*self.JAVA, "-cp", f"{self.schemas.libs}/*", main, *args]

    def format_argv(self, cluster_id: str) -> list[str]:
        return self.java(
            "kafka.tools.StorageTool", "format", "-t", cluster_id, "-c", str(self.config)
        )

    def serve_argv(self) -> list[str]:
        return self.java("kafka.Kafka", str(self.config))


SYSTEMS: dict[str, type[Broker]] = {"tidelog": Tidelog, "kafka": ApacheKafka}
