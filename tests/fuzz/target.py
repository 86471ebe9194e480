"""A real node as the target of fuzzed frames, and the rules that must hold for any frame.

No frame makes the node raise an exception. The node answers every frame, at the latest when the
wait time of the request is over, or closes the frame's connection. It still serves all other
clients.
"""

from tests.sim.messages import ask, batch, create_topic, frame_of, produce_to
from tests.unit.node.bench import Bench

from tidelog.api.listeners import ListenerKind
from tidelog.api.registry import REGISTRY, Api
from tidelog.model.events import Ticked
from tidelog.model.ids import ConnId
from tidelog.protocol.messages.headers import request_prefix

LONGEST_WAIT_MS = 2**31
"""The longest wait time that a request can contain."""

PROBE = frame_of(ask(18, client_software_name="probe", client_software_version="1"))[4:]


class Target:
    """A single node with two topics, one of which flushes each batch before it acknowledges it."""

    def __init__(self) -> None:
        self._bench = Bench()
        self._bench.ask(create_topic("orders", 2))
        self._bench.ask(create_topic("payments", flush_messages="1"))
        self._bench.ask(produce_to("orders", batch(b"a", b"b", b"c")))
        self._healthy = self._bench.connect()

    def connect(self, listener: str) -> ConnId:
        return self._bench.connect(listener)

    def feed(self, conn: ConnId, frame: bytes) -> None:
        """Send one frame, then complete the fsyncs that it causes."""
        if conn not in self._bench.closed:
            self._bench.send_frame(conn, frame)
            self._bench.flush()

    def check_others_are_served(self) -> None:
        bench = self._bench
        if bench.stopped is None:
            bench.send_frame(self._healthy, PROBE)
            assert len(bench.sent.pop(self._healthy)) == 1

    def check_all_are_answered(self, fed: dict[ConnId, list[bytes]]) -> None:
        """After the longest wait, every frame must be answered or its connection closed."""
        bench = self._bench
        bench.now += LONGEST_WAIT_MS
        bench.tell(Ticked())
        bench.settle()
        for conn, frames in fed.items():
            # Produce with acks=0 has no answer, so frames with API key 0 need none.
            least = sum(not frame.startswith(b"\0\0") for frame in frames)
            answers = len(bench.sent.get(conn, ()))
            is_over = conn in bench.closed or bench.stopped is not None
            assert is_over or least <= answers <= len(frames), (
                f"{answers} of {len(frames)} answered"
            )


def listener_of(api: Api) -> str:
    return "PLAINTEXT" if ListenerKind.BROKER in api.listeners else "CONTROLLER"


def request_frame(api: Api, version: int, body: bytes) -> bytes:
    """The body with the header of its API and version."""
    return request_prefix(api.key, version, 1, "fuzz")[4:] + body


EVERY_VERSION = [
    (api, version)
    for api in REGISTRY.values()
    for version in range(api.min_version, api.max_version + 1)
]
