"""The freeze meter counts slow passes of the loop, and logs them with their cause."""

import logging
import socket
import struct
from time import sleep
from typing import NamedTuple

import pytest
from tests.unit.runtime.echo import EchoNode, framed, serving

from tidelog.model.events import Event, Ticked
from tidelog.model.ids import ConnId, Millis
from tidelog.model.metrics import Counter, Gauge, Metric
from tidelog.model.outbound import Outbound
from tidelog.protocol.framing import FrameSplitter
from tidelog.runtime.freezes import SLOW_MS, STEP_MS, FreezeMeter
from tidelog.runtime.logs import LineLimit
from tidelog.runtime.transport.connection import Connection

METADATA = 3


def request(client_id: bytes, body: bytes = b"", key: int = METADATA, version: int = 1) -> bytes:
    return struct.pack(">hhih", key, version, 7, len(client_id)) + client_id + body


def connection(conn: ConnId = 1) -> Connection:
    return Connection(conn, socket.socket(), "10.0.0.7:5533", FrameSplitter(100), 0)


class Seen(NamedTuple):
    computing: int
    waiting: int
    longest_ms: int


def seen(metrics: list[Metric]) -> Seen:
    passes, longest = metrics
    assert isinstance(passes, Counter)
    assert isinstance(longest, Gauge)
    (_, computing), (_, waiting) = passes.samples
    return Seen(computing, waiting, longest.samples[0][1])


class Processor:
    """CPU time that the test controls."""

    def __init__(self) -> None:
        self.ns = 0

    def __call__(self) -> int:
        return self.ns


def one_pass(meter: FreezeMeter, cpu: Processor, took_ms: Millis, cpu_ms: Millis) -> None:
    meter.begin(1_000)
    cpu.ns += cpu_ms * 1_000_000
    meter.end(1_000 + took_ms, events=3)


def test_a_pass_is_counted_from_50_ms_on() -> None:
    cpu = Processor()
    meter = FreezeMeter(cpu)
    one_pass(meter, cpu, SLOW_MS - 1, SLOW_MS - 1)
    assert seen(meter.metrics()) == (0, 0, 0)
    one_pass(meter, cpu, SLOW_MS, SLOW_MS)
    one_pass(meter, cpu, 300, 299)
    one_pass(meter, cpu, 80, 70)
    assert seen(meter.metrics()) == (3, 0, 300)


def test_time_without_a_processor_is_counted_apart(caplog: pytest.LogCaptureFixture) -> None:
    cpu = Processor()
    meter = FreezeMeter(cpu)
    one_pass(meter, cpu, took_ms=120, cpu_ms=3)
    assert seen(meter.metrics()) == (0, 1, 120)
    assert "120 ms (3 ms of CPU) for 3 events" in caplog.text


def test_the_longest_step_is_blamed(caplog: pytest.LogCaptureFixture) -> None:
    cpu = Processor()
    meter = FreezeMeter(cpu)
    meter.begin(1_000)
    frame = memoryview(request(b"reporting", bytes(500)))
    for took_ms in (20, 90, 40):  # report the steps as the loop does
        if took_ms >= meter.report_from_ms:
            meter.blame_frame(took_ms, connection(), frame)
    meter.end(1_150, events=3)
    step = "90 ms for Metadata v1 of 519 bytes, client id 'reporting', from 10.0.0.7:5533"
    assert step in caplog.text
    assert meter.report_from_ms == STEP_MS

    meter.begin(2_000)
    meter.end(2_060, events=200)
    assert "longest step: less than 10 ms" in caplog.text


@pytest.mark.parametrize(
    ("frame", "said"),
    [
        (request(b"x\nERROR" + b"y" * 5_000), r"client id 'x\nERROR" + "y" * 53 + "'"),
        (request(b"", key=999), "API 999 v1 of 10 bytes, client id ''"),
        (b"\0\3", "a malformed request of 2 bytes"),
        (struct.pack(">hhih", 3, 1, 7, 20_000), "a malformed request of 10 bytes"),
    ],
)
def test_a_hostile_request_cannot_forge_or_stretch_the_line(
    frame: bytes, said: str, caplog: pytest.LogCaptureFixture
) -> None:
    meter = FreezeMeter(Processor())
    meter.begin(0)
    meter.blame_frame(60, connection(), memoryview(frame))
    meter.end(60, events=1)
    [record] = caplog.records
    assert said in record.getMessage()
    assert "\n" not in record.getMessage()
    assert len(record.getMessage()) < 300


def test_an_answer_of_a_peer_is_named_as_one(caplog: pytest.LogCaptureFixture) -> None:
    meter = FreezeMeter(Processor())
    meter.begin(0)
    meter.blame_frame(60, connection(-4), memoryview(bytes(70)))
    meter.end(60, events=1)
    assert "60 ms for an answer of 70 bytes from 10.0.0.7:5533" in caplog.text


def test_slow_passes_without_end_write_few_lines(caplog: pytest.LogCaptureFixture) -> None:
    cpu = Processor()
    meter = FreezeMeter(cpu)
    for second in range(3_600):
        meter.begin(second * 1_000)
        cpu.ns += 900_000_000
        meter.end(second * 1_000 + 900, events=1)
    assert seen(meter.metrics()).computing == 3_600
    assert 300 < len(caplog.records) < 400
    assert "(9 such lines were omitted before)" in caplog.records[-1].getMessage()
    caplog.clear()
    for second in range(3_600, 7_200):
        meter.begin(second * 1_000)
        meter.end(second * 1_000 + 900, events=1)
    assert seen(meter.metrics()).waiting == 3_600
    assert 100 < len(caplog.records) < 150


def test_a_line_limit_allows_a_burst_and_then_one_at_a_time() -> None:
    limit = LineLimit(burst=3, every_ms=1_000)
    assert [limit.allow(5_000) for _ in range(5)] == [True, True, True, False, False]
    assert not limit.allow(5_999)
    assert limit.allow(6_000)
    assert limit.omitted() == " (3 such lines were omitted before)"
    assert limit.omitted() == ""
    assert not limit.allow(6_999)
    assert [limit.allow(60_000) for _ in range(4)] == [True, True, True, False]


class SlowNode(EchoNode):
    """A node that is slow for a Metadata request."""

    def _answer(self, conn: ConnId, frame: bytes, now: Millis) -> list[Outbound]:
        if frame.startswith(b"\0\3"):
            sleep(2 * SLOW_MS / 1000)
            frame = b"e" + frame
        return super()._answer(conn, frame, now)


def test_the_loop_names_the_request_that_held_it_up(caplog: pytest.LogCaptureFixture) -> None:
    slow = request(b"reporting", bytes(100))
    with caplog.at_level(logging.WARNING), serving(SlowNode()) as served:
        client = served.client()
        client.sock.sendall(framed(b"e1") + framed(slow) + framed(b"e2"))
        assert [client.answer() for _ in range(3)] == [b"1", slow, b"2"]
        host, port = client.sock.getsockname()
        served.stop()
        lines = [record.getMessage() for record in caplog.records]
        where = f"Metadata v1 of {len(slow)} bytes, client id 'reporting', from {host}:{port}"
        assert any(where in line and "ms of CPU" in line for line in lines), lines
        assert seen(served.host.metrics()).longest_ms >= 2 * SLOW_MS


class SlicingNode(SlowNode):
    """A node whose tick is slow, as if it worked on a slice of a request."""

    has_ticked = False

    def next_deadline(self) -> Millis | None:
        return None if self.has_ticked else 0

    def handle(self, event: Event, now: Millis) -> list[Outbound]:
        if isinstance(event, Ticked):
            self.has_ticked = True
            sleep(2 * SLOW_MS / 1000)
            return []
        return super().handle(event, now)

    def in_work(self) -> str:
        return "a part of Metadata"


def test_the_loop_names_the_request_of_which_a_part_held_it_up(
    caplog: pytest.LogCaptureFixture,
) -> None:
    with caplog.at_level(logging.WARNING), serving(SlicingNode()) as served:
        assert served.client().ask(b"eserved") == b"served"
        served.stop()
    assert any("ms for a part of Metadata" in record.getMessage() for record in caplog.records)
