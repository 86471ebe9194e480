"""The splitter returns exactly the sent frames, however the stream is split."""

import resource
from collections.abc import Iterator
from itertools import cycle, pairwise
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidelog.protocol.framing import (
    DIRECT,
    GROWTH,
    SPARE_BYTES,
    BadFrame,
    Buffers,
    FrameSplitter,
)

MAX = 100 * 1024 * 1024
LARGEST = 2**31 - 1


def framed(frames: list[bytes]) -> bytes:
    return b"".join(len(frame).to_bytes(4, "big") + frame for frame in frames)


def pieces(stream: bytes, cuts: list[int]) -> Iterator[memoryview]:
    bounds = [0, *sorted(cut % (len(stream) + 1) for cut in cuts), len(stream)]
    for start, stop in pairwise(bounds):
        yield memoryview(bytearray(stream[start:stop]))


def held(splitter: FrameSplitter) -> int:
    return len(splitter._frame) + len(splitter._head)


@given(
    frames=st.lists(st.binary(max_size=60), max_size=8),
    cuts=st.lists(st.integers(0, 600), max_size=30),
)
def test_any_split_of_the_stream_gives_the_same_frames(
    frames: list[bytes], cuts: list[int]
) -> None:
    splitter = FrameSplitter(MAX)

    got = [bytes(f) for piece in pieces(framed(frames), cuts) for f in splitter.feed(piece)]

    assert got == frames
    assert held(splitter) == 0


def test_a_whole_frame_is_a_writable_view_of_the_fed_buffer() -> None:
    buffer = bytearray(framed([b"abc", b"defg"]))

    first, second = FrameSplitter(MAX).feed(memoryview(buffer))
    first[0] = ord("A")

    assert (bytes(first), bytes(second)) == (b"Abc", b"defg")
    assert buffer[4:5] == b"A"


def test_a_frame_of_its_own_buffer_is_writable() -> None:
    splitter = FrameSplitter(MAX)
    splitter.feed(memoryview(b"\0\0\0\3a"))

    (frame,) = splitter.feed(memoryview(b"bc"))
    frame[0] = ord("A")

    assert bytes(frame) == b"Abc"


@given(
    size=st.integers(DIRECT * 2, DIRECT * 9),
    arrivals=st.lists(st.integers(1000, DIRECT * 3), min_size=1, max_size=9),
)
def test_a_large_frame_is_received_in_place(size: int, arrivals: list[int]) -> None:
    splitter = FrameSplitter(MAX)
    body = bytes(range(256)) * (size // 256 + 1)
    stream = framed([body[:size], b"next"])
    position, got = 0, []
    for arrival in cycle(arrivals):
        space = splitter.space()
        room = DIRECT * 2 if space is None else len(space)
        part = stream[position : position + min(arrival, room)]
        if space is None:
            got += splitter.feed(memoryview(bytearray(part)))
        else:
            space[: len(part)] = part
            got += splitter.received(len(part))
        position += len(part)
        if position == len(stream):
            break

    assert [bytes(frame) for frame in got] == [body[:size], b"next"]
    assert held(splitter) == 0


def test_space_is_offered_only_inside_a_large_frame() -> None:
    splitter = FrameSplitter(MAX)
    assert splitter.space() is None

    splitter.feed(memoryview((3 * DIRECT).to_bytes(4, "big") + bytes(DIRECT - 1)))
    assert splitter.space() is None

    splitter.feed(memoryview(b"x"))
    space = splitter.space()
    assert space is not None
    assert len(space) == 2 * DIRECT


def test_a_lying_length_costs_no_more_than_the_bytes_that_came() -> None:
    splitter = FrameSplitter(MAX)
    splitter.feed(memoryview(SPARE_BYTES.to_bytes(4, "big") + b"half a frame, then silence"))
    assert held(splitter) < 200

    splitter.feed(memoryview(bytes(DIRECT)))
    assert splitter.space() is not None
    assert held(splitter) <= GROWTH * (DIRECT + 26)


def resident_bytes() -> int:
    """The resident memory of this process."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * resource.getpagesize()


def test_f60_a_length_of_two_gigabytes_takes_the_memory_of_the_bytes_that_came() -> None:
    splitter = FrameSplitter(LARGEST)
    came = memoryview(bytes(4 * DIRECT))
    before = resident_bytes()

    splitter.feed(memoryview(LARGEST.to_bytes(4, "big")))
    splitter.feed(came)

    space = splitter.space()
    assert space is not None
    assert len(space) == LARGEST - len(came)
    assert resident_bytes() - before < 4 * len(came)


def test_f60_a_frame_larger_than_any_buffer_that_is_kept_arrives_whole() -> None:
    buffers = Buffers()
    body = bytes(range(256)) * (SPARE_BYTES // 256 + 3)

    frame = received_whole(FrameSplitter(LARGEST, buffers), body)
    frame[0] = 7

    assert frame[1:] == body[1:]
    assert buffers.take(DIRECT) is None, "it is not kept for other frames"


def received_whole(splitter: FrameSplitter, body: bytes) -> memoryview:
    stream = memoryview(framed([body]))
    position = 0
    while True:
        space = splitter.space()
        room = DIRECT if space is None else len(space)
        part = stream[position : position + min(room, 1_000_003)]
        position += len(part)
        if space is None:
            got = splitter.feed(part)
        else:
            space[: len(part)] = part
            got = splitter.received(len(part))
        if got:
            [frame] = got
            return frame


def test_a_frame_in_single_bytes_is_not_copied_again_and_again() -> None:
    splitter = FrameSplitter(MAX)
    splitter.feed(memoryview((1 << 16).to_bytes(4, "big")))
    buffers = set()
    for _ in range(1 << 16):
        frames = splitter.feed(memoryview(b"x"))
        buffers.add(len(splitter._frame))
    assert len(frames) == 1
    assert len(buffers) < 12


@pytest.mark.parametrize(
    ("length", "reason"),
    [
        (b"\xff\xff\xff\xff", "negative frame length -1"),
        (b"\x80\0\0\0", "negative frame length -2147483648"),
        (b"\x7f\xff\xff\xff", "frame length 2147483647 is over the limit of 104857600"),
        (b"GET ", "sent an HTTP request to a Kafka port"),
    ],
)
@pytest.mark.parametrize("cut", [0, 1, 3, 4])
def test_a_bad_length_is_refused_after_the_frames_before_it(
    length: bytes, reason: str, cut: int
) -> None:
    splitter = FrameSplitter(MAX)
    got = splitter.feed(memoryview(b"\0\0\0\2ok" + length[:cut])) if cut < 4 else []
    rest = length[cut:] if cut < 4 else b"\0\0\0\2ok" + length

    with pytest.raises(BadFrame) as raised:
        splitter.feed(memoryview(rest))

    assert raised.value.reason == reason
    assert [bytes(frame) for frame in got + raised.value.frames] == [b"ok"]


def test_an_empty_frame_is_a_frame() -> None:
    assert [bytes(f) for f in FrameSplitter(MAX).feed(memoryview(bytes(8)))] == [b"", b""]


def received_in(buffers: Buffers, size: int) -> memoryview:
    """A frame of this size, received by a connection that uses these shared buffers."""
    splitter = FrameSplitter(MAX, buffers)
    frames = splitter.feed(memoryview(size.to_bytes(4, "big") + bytes(2 * DIRECT)))
    while not frames:
        space = splitter.space()
        assert space is not None
        frames = splitter.received(len(space))
    return frames[0]


def test_the_buffer_of_a_large_frame_serves_the_next_one() -> None:
    buffers = Buffers()
    first = received_in(buffers, 9 * DIRECT).obj
    second = received_in(buffers, 8 * DIRECT).obj

    assert second is not first  # the test still holds the first buffer
    known = {id(first), id(second)}
    del first, second
    for _ in range(5):
        assert id(received_in(buffers, 8 * DIRECT).obj) in known


def test_a_buffer_is_not_used_again_while_a_part_of_its_frame_is_looked_at() -> None:
    buffers = Buffers()
    part = received_in(buffers, 9 * DIRECT)[100:120]
    part[:] = b"x" * 20

    for _ in range(5):
        received_in(buffers, 9 * DIRECT)[:] = bytes(9 * DIRECT)

    assert bytes(part) == b"x" * 20


def test_no_more_is_kept_for_later_frames_than_promised() -> None:
    buffers = Buffers()
    frames = [received_in(buffers, SPARE_BYTES // 3) for _ in range(9)]
    assert len({id(frame.obj) for frame in frames}) == 9

    assert sum(len(spare) for spare in buffers._spares) <= SPARE_BYTES
    received_in(buffers, 2 * SPARE_BYTES)
    assert sum(len(spare) for spare in buffers._spares) <= SPARE_BYTES


def feed_all(splitter: FrameSplitter, *parts: bytes) -> list[bytes]:
    fed = [splitter.feed(memoryview(bytearray(part))) for part in parts]
    return [bytes(frame) for frames in fed for frame in frames]


APIS = {10: ("FindCoordinator", 100_000), 0: ("Produce", 2**31 - 1)}


@pytest.mark.parametrize("first", [4, 5, 6, 20])
def test_f63_a_request_too_long_for_its_api_is_refused_before_it_is_received(first: int) -> None:
    splitter = FrameSplitter(100_000_000, None, APIS)
    stream = (99_000_000).to_bytes(4, "big") + b"\0\x0a" + bytes(100)

    with pytest.raises(BadFrame, match="FindCoordinator of 99000000 bytes, over the limit of 1000"):
        feed_all(splitter, stream[:first], stream[first:])


def test_a_request_that_may_be_long_is_received() -> None:
    splitter = FrameSplitter(100_000_000, None, APIS)
    frame = bytes(200_000)

    parts = (len(frame).to_bytes(4, "big") + frame[:50], frame[50:])

    assert feed_all(splitter, *parts) == [frame]
