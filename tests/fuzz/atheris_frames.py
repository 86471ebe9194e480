"""Coverage-guided fuzzing of frames, with atheris; not part of ./test.

    python3.11 -m venv fuzz-venv
    fuzz-venv/bin/pip install -e . atheris hypothesis
    fuzz-venv/bin/python -m tests.fuzz.atheris_frames --write-corpus corpus
    fuzz-venv/bin/python -m tests.fuzz.atheris_frames corpus -max_total_time=300

Run these commands in the root of the repository. All further flags are those of libFuzzer. An input
begins with one byte that selects the listener. Frames follow, each preceded by its length in two
bytes. A node gets several inputs before it is replaced. A failure prints all inputs of the node,
because it may depend on earlier inputs.
"""

import logging
import sys
from io import BytesIO
from pathlib import Path

import atheris

with atheris.instrument_imports(include=["tidelog"]):
    from kio.serial import entity_writer
    from tests.fuzz.target import EVERY_VERSION, Target, listener_of, request_frame
    from tests.sim.messages import batch, fetch_from, frame_of, produce_to
    from tests.unit.api.round_trip import minimal, one_of_each

    from tidelog.protocol.messages.schema import request_class

INPUTS_PER_NODE = 200
LISTENERS = ("PLAINTEXT", "CONTROLLER")


class Fuzzer:
    def __init__(self) -> None:
        self._target = Target()
        self._taken: list[bytes] = []

    def __call__(self, data: bytes) -> None:
        if len(self._taken) == INPUTS_PER_NODE:
            self._target, self._taken = Target(), []
        self._taken.append(data)
        try:
            self._feed(data)
        except BaseException:
            print("the inputs of this node, the last of which failed:", file=sys.stderr)
            for taken in self._taken:
                print(taken.hex(), file=sys.stderr)
            raise

    def _feed(self, data: bytes) -> None:
        if not data:
            return
        conn = self._target.connect(LISTENERS[data[0] % 2])
        fed = split(data[1:])
        for frame in fed:
            self._target.feed(conn, frame)
        self._target.check_others_are_served()
        self._target.check_all_are_answered({conn: fed})


def split(data: bytes) -> list[bytes]:
    """Split an input into frames; the last frame may be shorter than its given length."""
    frames: list[bytes] = []
    while len(data) >= 2:
        size = int.from_bytes(data[:2], "big")
        frames.append(data[2 : 2 + size])
        data = data[2 + size :]
    return frames


def joined(listener: str, *frames: bytes) -> bytes:
    head = bytes([LISTENERS.index(listener)])
    return head + b"".join(len(frame).to_bytes(2, "big") + frame for frame in frames)


def write_corpus(directory: Path) -> None:
    """Write two valid requests of every API and version, and one input with records."""
    directory.mkdir(parents=True, exist_ok=True)
    for api, version in EVERY_VERSION:
        cls = request_class(api.key, version)
        for kind, entity in (("minimal", minimal(cls)), ("one", one_of_each(cls))):
            body = BytesIO()
            entity_writer(cls)(body, entity)
            frame = request_frame(api, version, body.getvalue())
            (directory / f"{api.name}-{version}-{kind}").write_bytes(
                joined(listener_of(api), frame)
            )
    records = frame_of(produce_to("orders", batch(b"x", b"y")))[4:]
    silent = frame_of(produce_to("payments", batch(b"x"), acks=0))[4:]
    read = frame_of(fetch_from("orders", {0: 0, 1: 0}, max_wait_ms=100))[4:]
    (directory / "records").write_bytes(joined("PLAINTEXT", records, silent, read))


def main() -> None:
    if sys.argv[1:2] == ["--write-corpus"]:
        write_corpus(Path(sys.argv[2]))
        return
    logging.disable(logging.CRITICAL)
    atheris.Setup(sys.argv, Fuzzer())
    atheris.Fuzz()


if __name__ == "__main__":
    main()
