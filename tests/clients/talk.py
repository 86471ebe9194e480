"""A conversation with a broker in one version of one API, recorded as a transcript.

Values that differ between two runs (ports, ids, times, texts of messages) are replaced by names in
the transcript. Two systems that behave alike therefore have equal transcripts.
"""

import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple
from uuid import UUID

from tests.clients.batches import Batch, describe
from tests.clients.schema import ZERO_UUID, Schemas
from tests.clients.systems import PATIENCE, Broker
from tests.clients.wire import CLOSED, Wire

Answer = dict[str, Any]

SETUP = {
    "CreateTopics": 7,
    "Metadata": 12,
    "Produce": 9,
    "Fetch": 12,
    "ListOffsets": 7,
    "DeleteTopics": 6,
}
"""The API versions in which a case prepares its topics and checks the result."""


class Topic(NamedTuple):
    name: str
    id: UUID


class Normal:
    """Replaces those values of an answer that differ from run to run."""

    REPLACED: ClassVar = {
        "clusterId": "<cluster>",
        "host": "<host>",
        "port": "<port>",
        "errorMessage": "<text>",
        "batchIndexErrorMessage": "<text>",
        "documentation": "<text>",
        "logDir": "<directory>",
        "totalBytes": "<bytes>",
        "usableBytes": "<bytes>",
        "clientHost": "<host>",
    }
    ALIASED: ClassVar = {
        "producerId": "producer",
        "memberId": "member",
        "leader": "member",
        "sessionId": "session",
    }
    """Values that get a number in a transcript; the first producer id becomes producer-1."""

    def __init__(self, version: int) -> None:
        self.version = version
        self.aliases: dict[str, dict[Any, str]] = {}

    def alias(self, kind: str, value: Any) -> str:
        known = self.aliases.setdefault(kind, {})
        return known.setdefault(value, f"{kind}-{len(known) + 1}")

    def __call__(self, value: Any, name: str = "") -> Any:
        if isinstance(value, dict):
            return {key: self(inner, key) for key, inner in value.items()}
        if isinstance(value, list):
            return [self(inner, name) for inner in value]
        if isinstance(value, UUID):
            return "zero" if value == ZERO_UUID else self.alias("id", value)
        if isinstance(value, bytes):
            return self(describe(value)) if name == "records" else value.hex()
        if value is None:
            return None
        if name in self.REPLACED and value != -1:
            return self.REPLACED[name]
        if name in self.ALIASED and value not in ("", -1) and (name, value) != ("sessionId", 0):
            return self.alias(self.ALIASED[name], value)
        if (
            name.lower().endswith(("timems", "timestamp"))
            and abs(value - time.time() * 1000) < 600_000
        ):
            return "<now>"
        if isinstance(value, str):  # it may be a name made by Talk.name
            return value.replace(f".v{self.version}.", ".v*.")
        return value


@dataclass
class Talk:
    broker: Broker
    case: str
    api: str
    version: int

    def __post_init__(self) -> None:
        self.normal = Normal(self.version)
        self.transcript: list[Any] = []
        self.connection: Wire | None = None
        self.topics = 0

    @property
    def schemas(self) -> Schemas:
        return self.broker.schemas

    @property
    def wire(self) -> Wire:
        if self.connection is None:
            self.connection = self.broker.connect()
        return self.connection

    def hang_up(self) -> None:
        if self.connection is not None:
            self.connection.close()
            self.connection = None

    # -- requests in the version under test --------------------------------------------------------

    def ask(self, body: Answer | None = None, only: Callable[[Answer], Any] | None = None) -> Any:
        """Send a request in the version under test, record the answer, and return it unchanged."""
        return self.ask_other(self.api, self.version, body, only)

    def ask_other(
        self,
        api: str,
        version: int | None,
        body: Answer | None = None,
        only: Callable[[Answer], Any] | None = None,
    ) -> Any:
        answer = self.quietly(api, SETUP[api] if version is None else version, body or {})
        self.note(only(answer) if only is not None and isinstance(answer, dict) else answer)
        return answer

    def quietly(self, api: str, version: int, body: Answer) -> Any:
        answer = self.wire.ask(api, version, body)
        if answer == CLOSED:
            self.hang_up()
        return answer

    def note(self, value: Any) -> None:
        self.transcript.append(self.normal(value))

    def send(self, frame: bytes) -> None:
        """Send a frame, and record whether the broker answers or closes the connection."""
        self.wire.send_frame(frame)
        answer = self.wire.receive_frame()
        self.note(CLOSED if answer is None else "answered")
        self.hang_up()

    # -- preparation of topics, and checks ---------------------------------------------------------

    def name(self) -> str:
        """A topic name that is the same in every run."""
        self.topics += 1
        return f"{self.api}.{self.case}.v{self.version}.{self.topics}"

    def topic(self, partitions: int = 1, name: str | None = None, **configs: object) -> Topic:
        """Create a topic, and wait until each of its partitions has a leader on this broker."""
        name = name or self.name()
        answer = self.quietly(
            "CreateTopics", SETUP["CreateTopics"], creation(name, partitions, configs)
        )
        assert answer["topics"][0]["errorCode"] == 0, answer
        return self.settled(name, partitions)

    def settled(self, name: str, partitions: int = 1) -> Topic:
        deadline = time.monotonic() + PATIENCE
        while time.monotonic() < deadline:
            (found,) = self.quietly("Metadata", 12, {"topics": [{"name": name}]})["topics"]
            if found["errorCode"] == 0 and len(found["partitions"]) == partitions:
                wanted = [{"partitionIndex": n, "timestamp": -1} for n in range(partitions)]
                body = {"replicaId": -1, "topics": [{"name": name, "partitions": wanted}]}
                (listed,) = self.quietly("ListOffsets", SETUP["ListOffsets"], body)["topics"]
                # Kafka's Metadata names a leader a moment before that leader accepts requests.
                if all(partition["errorCode"] == 0 for partition in listed["partitions"]):
                    return Topic(name, found["topicId"])
            time.sleep(0.01)
        raise AssertionError(f"{name} has no leader: {found}")

    def produce(self, topic: Topic, *batches: Batch, partition: int = 0) -> None:
        for batch in batches:
            data = {"index": partition, "records": batch.encode()}
            body = {"acks": -1, "timeoutMs": 30000,
                    "topicData": [{"name": topic.name, "partitionData": [data]}]}  # fmt: skip
            answer = self.quietly("Produce", SETUP["Produce"], body)
            (response,) = answer["responses"][0]["partitionResponses"]
            assert response["errorCode"] == 0, response

    def look(self, topic: Topic, partition: int = 0, offset: int = 0) -> None:
        """Record the result of a fetch from this offset."""
        self.ask_other(
            "Fetch", None, fetching([(topic, [{"partition": partition, "fetchOffset": offset}])])
        )

    def until(self, ready: Callable[[], bool], what: str) -> None:
        deadline = time.monotonic() + PATIENCE
        while not ready():
            assert time.monotonic() < deadline, f"still waiting: {what}"
            time.sleep(0.02)


def creation(name: str, partitions: int = 1, configs: dict[str, object] | None = None) -> Answer:
    pairs = [{"name": key, "value": str(value)} for key, value in (configs or {}).items()]
    topic = {"name": name, "numPartitions": partitions, "replicationFactor": 1, "configs": pairs}
    return {"topics": [topic], "timeoutMs": 30000}


def fetching(
    wanted: Iterable[tuple[Topic, list[Answer]]], partition_max_bytes: int = 1 << 20, **fields: Any
) -> Answer:
    """A Fetch with the name and the id of each topic. Each version encodes only one of the two."""
    topics = [
        {
            "topic": topic.name,
            "topicId": topic.id,
            "partitions": [{"partitionMaxBytes": partition_max_bytes, **p} for p in partitions],
        }
        for topic, partitions in wanted
    ]
    return {"maxWaitMs": 0, "minBytes": 0, "maxBytes": 1 << 24, "topics": topics,
            "sessionEpoch": -1, **fields}  # fmt: skip
