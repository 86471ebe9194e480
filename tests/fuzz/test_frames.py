"""Arbitrary and almost valid frames for every API and version, against a real node."""

from io import BytesIO
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from kio.serial import entity_writer
from tests.fuzz.target import EVERY_VERSION, Target, listener_of, request_frame
from tests.sim.messages import batch
from tests.unit.api.any_message import message

from tidelog.api.registry import Api
from tidelog.protocol.messages.schema import request_class

FEW = settings(max_examples=40, suppress_health_check=list(HealthCheck))

NASTY = [b"\xff" * 4, b"\x7f\xff\xff\xff", b"\x80", b"\0" * 8]
RECORDS = [batch(b"x"), batch(b"x", b"y", producer_id=1, producer_epoch=0, base_sequence=0)]


@st.composite
def valid_bodies(draw: st.DrawFn, api: Api, version: int) -> bytes:
    """Any request of this API, encoded by kio; record fields often hold a valid batch."""
    entity: Any = draw(message(request_class(api.key, version)))
    out = BytesIO()
    entity_writer(type(entity))(out, entity)
    return out.getvalue()


@st.composite
def mutated(draw: st.DrawFn, frame: bytes) -> bytes:
    """The frame with a few bytes changed, removed, repeated or inserted."""
    made = bytearray(frame)
    for _ in range(draw(st.integers(1, 3))):
        start = draw(st.integers(0, max(0, len(made) - 1)))
        end = min(len(made), start + draw(st.integers(0, 8)))
        match draw(st.integers(0, 3)):
            case 0:
                made[start:end] = draw(st.binary(min_size=end - start, max_size=end - start))
            case 1:
                del made[start:end]
            case 2:
                made[start:start] = made[start:end]
            case _:
                made[start:end] = draw(
                    st.sampled_from(
                        (b"\xff" * 4, b"\x7f\xff\xff\xff", b"\x80", b"\0" * 8, *RECORDS)
                    )
                )
    return bytes(made)


@st.composite
def frames(draw: st.DrawFn) -> tuple[str, bytes]:
    """A listener and a frame for it: random bytes, a valid request or a damaged one."""
    api, version = draw(st.sampled_from(EVERY_VERSION))
    match draw(st.integers(0, 5)):
        case 0:
            return draw(st.sampled_from(("PLAINTEXT", "CONTROLLER"))), draw(st.binary(max_size=64))
        case 1:
            return listener_of(api), request_frame(api, version, draw(st.binary(max_size=64)))
        case 2 | 3:
            body = draw(valid_bodies(api, version))
            return listener_of(api), request_frame(api, version, body)
        case _:
            body = draw(valid_bodies(api, version))
            return listener_of(api), draw(mutated(request_frame(api, version, body)))


@FEW
@given(st.lists(frames(), min_size=1, max_size=8))
def test_any_frame_is_answered_or_ends_its_connection_alone(
    given_frames: list[tuple[str, bytes]],
) -> None:
    target = Target()
    conns = {listener: target.connect(listener) for listener in ("PLAINTEXT", "CONTROLLER")}
    fed: dict[int, list[bytes]] = {conn: [] for conn in conns.values()}
    for listener, frame in given_frames:
        target.feed(conns[listener], frame)
        fed[conns[listener]].append(frame)
        target.check_others_are_served()
    target.check_all_are_answered(fed)
