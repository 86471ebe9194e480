"""Bad input affects only the client that sends it.

That client gets Kafka's error, or the broker closes its connection and logs one line. The memory
that the broker uses is bounded, and all other clients are still served.
"""

import random
import resource
import socket
import struct
from collections.abc import Iterator

import pytest
from tests.clients.batches import Batch, Record
from tests.clients.hostile import Bystander, Memory, await_room_in_the_log, eventually, tells_once
from tests.clients.schema import ZERO_UUID, Schemas, Struct, varint
from tests.clients.systems import HOST, Broker
from tests.clients.talk import SETUP, Talk, Topic, fetching
from tests.clients.wire import Wire

MAX_FRAME = 104_857_600
"""Kafka's default for socket.request.max.bytes."""


@pytest.fixture(scope="module")
def victim(
    system: type[Broker], schemas: Schemas, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Broker]:
    """One broker that receives the bad input of all tests."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))  # the broker inherits the limit
    broker = system(tmp_path_factory.mktemp("victim"), schemas)
    broker.format()
    broker.start()
    yield broker
    broker.kill()
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


@pytest.fixture
def bystander(victim: Broker) -> Iterator[Bystander]:
    """A client that connects before the bad input, and must be served after it."""
    client = Bystander(victim)
    yield client
    client.is_served()
    client.wire.close()
    assert victim.is_alive()
    traceback = "Traceback (most recent call last)"
    assert traceback not in victim.log_text(), victim.log_text()[-3000:]


@pytest.fixture
def topic(victim: Broker, topic: str) -> Topic:
    talk = Talk(victim, "bad-input", topic, 0)
    created = talk.topic(name=topic)
    talk.hang_up()
    return created


def is_hung_up_on(broker: Broker, data: bytes) -> None:
    """Assert that the broker closes a connection that sends these bytes, and logs this once."""
    await_room_in_the_log(broker)
    with broker.connect() as wire:
        peer = wire.name
        wire.socket.sendall(data)
        assert wire.is_closed(), f"{data[:20]!r} was answered"
    tells_once(broker, peer)


# -- bytes that are not a valid request ------------------------------------------------------------

STRANGERS = {
    "http": b"GET / HTTP/1.1\r\nHost: x\r\n\r\n",
    "tls": b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + bytes(64),
    "ssh": b"SSH-2.0-OpenSSH_9.2\r\n",
    "two gigabytes": struct.pack(">i", 2**31 - 1),
    "just too long": struct.pack(">i", MAX_FRAME + 1),
    "negative": struct.pack(">i", -1),
    "most negative": struct.pack(">i", -(2**31)),
}


@pytest.mark.parametrize("who", STRANGERS)
def test_strangers(victim: Broker, bystander: Bystander, who: str) -> None:
    is_hung_up_on(victim, STRANGERS[who])


@pytest.mark.parametrize("seed", range(20))
def test_garbage(victim: Broker, bystander: Bystander, seed: int) -> None:
    dice = random.Random(seed)
    garbage = dice.randbytes(dice.randrange(1, 2000))
    is_hung_up_on(victim, struct.pack(">i", len(garbage)) + garbage)


BAD_HEADERS = {
    "unknown key": struct.pack(">hhih", 999, 0, 1, -1),
    "version too high": struct.pack(">hhih", 3, 100, 1, -1),
    "version too low": struct.pack(">hhih", 1, 3, 1, -1) + bytes(40),
    "negative version": struct.pack(">hhih", 3, -1, 1, -1),
    "client id overruns": struct.pack(">hhih", 3, 0, 1, 32767) + b"short",
    "client id negative": struct.pack(">hhih", 3, 0, 1, -2),
    "half a header": struct.pack(">hh", 3, 0),
}


@pytest.mark.parametrize("what", BAD_HEADERS)
def test_bad_headers(victim: Broker, bystander: Bystander, what: str) -> None:
    frame = BAD_HEADERS[what]
    is_hung_up_on(victim, struct.pack(">i", len(frame)) + frame)


def test_half_a_frame_and_silence(victim: Broker, bystander: Bystander) -> None:
    silent = []
    for size in (1, 3, 4, 5, 100):
        wire = victim.connect()
        frame = wire.frame("Metadata", 5, {"topics": [{"name": "x" * 240}]})
        data = struct.pack(">i", len(frame)) + frame
        wire.socket.sendall(data[:size])
        silent.append((wire, data[size:]))
    bystander.is_served()
    for wire, rest in silent:  # each client can still complete its request
        wire.socket.sendall(rest)
        assert isinstance(wire.answer("Metadata", 5), dict)
        wire.close()


def test_a_long_frame_that_never_comes_costs_no_memory(
    victim: Broker, bystander: Bystander
) -> None:
    # Apache Kafka allocates the announced size, and its small heap has room for two such frames.
    count = 200 if victim.name == "tidelog" else 2
    memory = Memory(victim)
    liars = [victim.connect() for _ in range(count)]
    for wire in liars:
        wire.socket.sendall(struct.pack(">i", MAX_FRAME - 1) + bytes(1000))
    bystander.is_served()
    memory.grew_at_most(50 if victim.name == "tidelog" else 300)
    for wire in liars:
        wire.close()


def test_a_frame_byte_by_byte(victim: Broker, bystander: Bystander) -> None:
    with victim.connect() as wire:
        frame = wire.frame("Metadata", 5, {"topics": []})
        for byte in struct.pack(">i", len(frame)) + frame:
            wire.socket.sendall(bytes([byte]))
        assert isinstance(wire.answer("Metadata", 5), dict)


# -- wrong lengths and counts in messages ----------------------------------------------------------


def spoken(broker: Broker, schemas: Schemas) -> list[tuple[str, int]]:
    """Every API and version that this broker advertises."""
    with broker.connect() as wire:
        answer = wire.ask("ApiVersions", 0, {})
    assert isinstance(answer, dict)
    pairs = []
    for api in answer["apiKeys"]:
        name = schemas.apis[api["apiKey"]]
        valid = schemas.request(name).versions
        first, last = max(api["minVersion"], valid.low), min(api["maxVersion"], valid.high)
        pairs += [(name, version) for version in range(first, last + 1)]
    return pairs


def survives(broker: Broker, frame: bytes) -> None:
    """Assert that the broker answers the frame or closes the connection."""
    with broker.connect() as wire:
        wire.send_frame(frame)
        wire.socket.shutdown(socket.SHUT_WR)
        wire.receive_frame()  # raises TimeoutError if the broker does neither


LIES = {
    "all ones": b"\xff" * 64,
    "all zeros": bytes(64),
    "two billion": struct.pack(">i", 2**31 - 1) * 16,
    "endless varints": b"\x80" * 200,
    "largest varint": varint(2**32 - 1) * 13,
    "nothing": b"",
}


@pytest.mark.parametrize("lie", LIES)
def test_lying_lengths(victim: Broker, bystander: Bystander, schemas: Schemas, lie: str) -> None:
    memory = Memory(victim)
    with victim.connect() as wire:
        for api, version in spoken(victim, schemas):
            survives(victim, wire.header(api, version) + LIES[lie])
    memory.grew_at_most(100)


@pytest.mark.parametrize("seed", range(4))
def test_requests_with_flipped_bytes(
    victim: Broker, bystander: Bystander, schemas: Schemas, seed: int
) -> None:
    """Sends a request of every API and version, each with a few changed bytes."""
    dice = random.Random(seed)
    memory = Memory(victim)
    # This includes requests that change the cluster, but not those that would stop it.
    pairs = [(api, version) for api, version in spoken(victim, schemas) if api not in DANGEROUS]
    with victim.connect() as wire:
        for api, version in pairs:
            frame = bytearray(wire.frame(api, version, sample_body(schemas, api, version)))
            for _ in range(dice.randrange(1, 4)):
                frame[dice.randrange(8, len(frame))] = dice.choice(
                    (0, 1, 0x7F, 0x80, 0xFF, dice.randrange(256))
                )
            if dice.random() < 0.3:
                del frame[dice.randrange(8, len(frame)) :]
            survives(victim, bytes(frame))
    memory.grew_at_most(100)


DANGEROUS = frozenset({"DeleteTopics", "UpdateFeatures", "UnregisterBroker", "ControlledShutdown"})


def sample_body(schemas: Schemas, api: str, version: int) -> dict[str, object]:
    """A body with one element in every array, so that there are bytes to damage."""

    plain = {"string": "s", "bytes": b"", "bool": False, "uuid": ZERO_UUID}

    def filled(struct: Struct) -> dict[str, object]:
        values: dict[str, object] = {}
        for field in struct.fields:
            if version not in field.versions:
                continue
            if field.is_array:
                values[field.name] = [
                    filled(field.struct) if field.struct else plain.get(field.kind, 0)
                ]
            elif field.struct is not None:
                values[field.name] = None if version in field.nullable else filled(field.struct)
        return values

    return filled(schemas.request(api).body)


# -- invalid record batches ------------------------------------------------------------------------


def test_a_storm_of_bad_batches_leaves_the_log_as_it_was(
    victim: Broker, bystander: Bystander, topic: Topic
) -> None:
    good, dice = Batch(records=(Record(),) * 3).encode(), random.Random(7)
    with victim.connect() as wire:
        accepted = 0
        for _ in range(500):
            bad = bytearray(good)
            # Do not change the base offset or the leader epoch, because the broker overwrites both.
            place = dice.choice([*range(8, 12), *range(16, len(bad))])
            bad[place] ^= 1 << dice.randrange(8)
            answer = wire.ask("Produce", SETUP["Produce"], producing(topic, bytes(bad)))
            assert isinstance(answer, dict)
            accepted += answer["responses"][0]["partitionResponses"][0]["errorCode"] == 0
        assert accepted == 0, "one flipped bit is never acknowledged"
        answer = wire.ask("Produce", SETUP["Produce"], producing(topic, good))
    assert isinstance(answer, dict)
    assert answer["responses"][0]["partitionResponses"][0]["baseOffset"] == 0


def producing(topic: Topic, records: bytes | None) -> dict[str, object]:
    data = [{"index": 0, "records": records}]
    return {
        "acks": -1,
        "timeoutMs": 30000,
        "topicData": [{"name": topic.name, "topicId": topic.id, "partitionData": data}],
    }


# -- clients that are too many, too slow or disconnected -------------------------------------------


def test_ten_thousand_idle_connections(victim: Broker, bystander: Bystander) -> None:
    limit, _hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    count = min(10_000, limit - 500)
    memory = Memory(victim)
    before = victim.open_files()
    idle = []
    try:
        for _ in range(count):
            idle.append(socket.create_connection((HOST, victim.port)))
        eventually(lambda: victim.open_files() >= before + count, f"{count} accepted connections")
        bystander.is_served()
        memory.grew_at_most(150)
        for each in idle[:: count // 50]:  # these connections still work
            wire = Wire.__new__(Wire)
            wire.socket, wire.schemas, wire.correlation = each, victim.schemas, 0
            assert isinstance(wire.ask("Metadata", 5, {"topics": []}), dict)
    finally:
        for each in idle:
            each.close()
    eventually(lambda: victim.open_files() < before + 100, "the connections to be let go")


def fill(broker: Broker, topic: Topic, mib: int) -> None:
    batch = Batch(records=(Record(value=bytes(1 << 19)),)).encode()
    with broker.connect() as wire:
        for _ in range(2 * mib):
            answer = wire.ask("Produce", SETUP["Produce"], producing(topic, batch))
            assert isinstance(answer, dict)


def test_a_client_that_never_reads_its_fetches(
    victim: Broker, bystander: Bystander, topic: Topic
) -> None:
    fill(victim, topic, 20)
    memory = Memory(victim)
    wanted = fetching(
        [(topic, [{"partition": 0, "fetchOffset": 0}])],
        partition_max_bytes=10 << 20,
        maxBytes=10 << 20,
        minBytes=1,
    )
    greedy = [victim.connect(timeout=1) for _ in range(20)]
    for wire in greedy:
        frame = wire.frame("Fetch", SETUP["Fetch"], wanted)
        flood(wire, struct.pack(">i", len(frame)) + frame, 500)
    bystander.is_served()
    memory.grew_at_most(100)
    for wire in greedy:
        wire.close()


def test_a_client_that_asks_and_never_listens(victim: Broker, bystander: Bystander) -> None:
    memory = Memory(victim)
    with victim.connect(timeout=1) as wire:
        frame = wire.frame("Metadata", 5, {"topics": None})
        flood(wire, struct.pack(">i", len(frame)) + frame, 200_000)
        bystander.is_served()
        memory.grew_at_most(100)


def flood(wire: Wire, frame: bytes, count: int) -> None:
    """Send the frame `count` times, or until the broker stops reading."""
    try:
        for _ in range(count // 100):
            wire.socket.sendall(frame * 100)
    except TimeoutError:
        pass  # the broker stopped reading, as expected


def test_clients_that_leave_while_their_fetches_wait(
    victim: Broker, bystander: Bystander, topic: Topic
) -> None:
    memory, before = Memory(victim), victim.open_files()
    wanted = fetching([(topic, [{"partition": 0, "fetchOffset": 0}])], minBytes=1, maxWaitMs=3000)
    for _ in range(5):
        waiting = [victim.connect() for _ in range(200)]
        for wire in waiting:
            wire.send_frame(wire.frame("Fetch", SETUP["Fetch"], wanted))
        bystander.is_served()
        for wire in waiting:
            wire.close()
    eventually(lambda: victim.open_files() < before + 50, "the connections to be let go")
    fill(victim, topic, 1)  # completes the fetches of clients that have disconnected
    memory.grew_at_most(50)


def test_clients_that_reset_the_connection(victim: Broker, bystander: Bystander) -> None:
    before = victim.open_files()
    for _ in range(200):
        wire = victim.connect()
        wire.send_frame(wire.frame("Metadata", 5, {"topics": None}))
        wire.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        wire.close()  # sends RST while an answer is under way
    eventually(lambda: victim.open_files() < before + 50, "the connections to be let go")
