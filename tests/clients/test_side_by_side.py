"""Tidelog and Apache Kafka get the same random requests and must give the same answers.

The golden answers of `test_wire_parity` cover hand-written cases; this test covers random requests.
A failure prints its seed, its step and the request. Add that request to `test_wire_parity`.
"""

import json
from collections.abc import Callable, Iterator
from random import Random
from typing import Any
from uuid import UUID

import pytest
from tests.clients.agreement import agrees, difference
from tests.clients.batches import NOW, Batch, Record
from tests.clients.parity.produce import producing_many
from tests.clients.schema import Schemas
from tests.clients.systems import ApacheKafka, Broker
from tests.clients.talk import Answer, Talk, Topic, fetching

STEPS = 400
NOWHERE = Topic("nowhere", UUID("00000000-0000-0000-0000-0000deadbeef"))
TOPICS: dict[str, dict[str, object]] = {
    "plain": {},
    "stamped": {"message.timestamp.type": "LogAppendTime"},
    "compacted": {"cleanup.policy": "compact"},
}
PARTITIONS = (0, 1, 5)
"""Partition 5 does not exist."""

PROPERTIES = {
    "group.min.session.timeout.ms": 1000,
    # The timestamps of the records are years old, so retention would delete the records. A long
    # check interval would not prevent that in Apache Kafka, which first checks half a minute after
    # its start.
    "log.retention.ms": -1,
}


@pytest.fixture(scope="module")
def brokers(
    system: type[Broker], schemas: Schemas, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[list[Broker]]:
    started = [
        kind(tmp_path_factory.mktemp(name), schemas, PROPERTIES)
        for name, kind in (("ours", system), ("kafka", ApacheKafka))
    ]
    for broker in started:
        broker.format()
        broker.launch()
    for broker in started:
        broker.await_ready()
    yield started
    for broker in started:
        broker.kill()


class Both:
    """Sends the same requests to both systems, each with that system's topic ids and member ids."""

    def __init__(self, brokers: list[Broker], seed: int) -> None:
        self.seed, self.steps = seed, 0
        self.talks = [Talk(broker, "side-by-side", "Any", 0) for broker in brokers]
        self.topics = [
            [talk.topic(2, f"{name}-{seed}", **configs) for talk in self.talks]
            for name, configs in TOPICS.items()
        ]
        self.topics.append([NOWHERE, NOWHERE])
        self.groups = (f"one-{seed}", f"other-{seed}", "")
        self.members: dict[str, list[tuple[str, int]]] = {}
        self.sessions: list[int] | None = None
        self.session_epoch = 0

    def ask(
        self,
        api: str,
        version: int,
        body: Callable[[int], Answer],
        ordered: Callable[[Answer], Any] = lambda answer: answer,
    ) -> list[Answer]:
        """Ask both systems, Tidelog first; `ordered` sorts lists that Kafka leaves unsorted."""
        self.steps += 1
        answers: list[Answer] = []
        said: list[Any] = []
        for which, talk in enumerate(self.talks):
            answer = talk.quietly(api, version, body(which))
            assert isinstance(answer, dict), f"{talk.broker.name} answered {api} with {answer}"
            answers.append(answer)
            said.append(json.loads(json.dumps(talk.normal(ordered(dict(answer))))))
        ours, kafka = said
        if not agrees(kafka, ours):
            asked = f"seed {self.seed}, step {self.steps}: {api} {version} {str(body(0))[:2000]}"
            pytest.fail(f"{asked}\n{difference(kafka, ours)}", False)
        return answers

    def fields_of(self, api: str, values: Answer) -> Answer:
        """Only those values that this API's request has as fields."""
        known = {field.name for field in self.talks[0].schemas.request(api).body.fields}
        return {name: value for name, value in values.items() if name in known}

    def hang_up(self) -> None:
        for talk in self.talks:
            talk.hang_up()


def by(outer: str, name: str, inner: str, index: str) -> Callable[[Answer], Any]:
    def ordered(answer: Answer) -> Any:
        for topic in answer[outer]:
            topic[inner].sort(key=lambda partition: partition[index])
        return sorted(answer[outer], key=lambda topic: str(topic.get(name)))

    return ordered


# -- requests about logs ---------------------------------------------------------------------------


def some_topics(dice: Random, most: int = 2) -> list[int]:
    return dice.sample(range(len(TOPICS) + 1), dice.randint(1, most))


def some_partitions(dice: Random) -> list[int]:
    return dice.sample(PARTITIONS, dice.choice((1, 1, 2)))


def a_batch(dice: Random) -> bytes:
    """A mostly valid batch. Its random sequence may repeat an earlier one or leave a gap."""
    records = tuple(
        Record(dice.choice((None, b"", b"v" * 100)), dice.choice((None, b"k")))
        for _ in range(dice.choice((1, 1, 2, 5)))
    )
    batch = Batch(records=records)
    if dice.random() < 0.5:
        batch = batch.but(
            producer_id=dice.choice((4000, 4001)),
            producer_epoch=dice.choice((0, 0, 0, 1)),
            base_sequence=dice.randrange(7),
        )
    faults: tuple[dict[str, int], ...] = (
        {"crc": 1},
        {"count": 9},
        {"base_offset": 1},
        {"attributes": 0x20},
        {"attributes": 0x10},
    )
    return (batch.but(**dice.choice(faults)) if dice.random() < 0.1 else batch).encode()


def produce(dice: Random, both: Both) -> None:
    version, acks = dice.randint(3, 12), dice.choice((-1, -1, 1, 1, 2))
    plan = [
        (topic, [(partition, a_batch(dice)) for partition in some_partitions(dice)])
        for topic in some_topics(dice)
    ]
    both.ask(
        "Produce",
        version,
        lambda which: producing_many([(both.topics[t][which], data) for t, data in plan], acks),
        by("responses", "name", "partitionResponses", "index"),
    )


def wanted(dice: Random, most: int = 3) -> list[tuple[int, list[Answer]]]:
    return [
        (
            topic,
            [
                {
                    "partition": partition,
                    "fetchOffset": dice.choice((0, 0, 1, 2, 3, 5, 8, 13, 99, -1)),
                    "currentLeaderEpoch": dice.choice((-1, -1, -1, 0, 1)),
                    "lastFetchedEpoch": dice.choice((-1, -1, 0)),
                }
                for partition in some_partitions(dice)
            ],
        )
        for topic in some_topics(dice, most)
    ]


def fetch(dice: Random, both: Both) -> None:
    plan, limit = wanted(dice), dice.choice((0, 1, 100, 200, 1 << 20))
    fields = {
        "maxBytes": dice.choice((0, 1, 150, 400, 1 << 20)),
        "isolationLevel": dice.choice((0, 1)),
    }
    both.ask(
        "Fetch",
        dice.randint(4, 18),
        lambda which: fetching([(both.topics[t][which], p) for t, p in plan], limit, **fields),
    )


def fetch_in_a_session(dice: Random, both: Both) -> None:
    begins = both.sessions is None or dice.random() < 0.1
    plan = wanted(dice) if dice.random() < 0.7 else []
    forgotten = [] if begins else [(dice.randrange(4), dice.choice(PARTITIONS))]
    epoch = 0 if begins else both.session_epoch
    if dice.random() < 0.05:
        epoch = dice.choice((epoch + 1, -1, 77))

    limit = dice.choice((1, 100, 1 << 20))

    def body(which: int) -> Answer:
        return fetching(
            [(both.topics[t][which], partitions) for t, partitions in plan],
            limit,
            sessionId=0 if begins or both.sessions is None else both.sessions[which],
            sessionEpoch=epoch,
            forgottenTopicsData=[
                {"topic": both.topics[t][which].name, "partitions": [p]} for t, p in forgotten
            ],
        )

    answers = both.ask("Fetch", 12, body)
    both.sessions = None
    if answers[0]["errorCode"] == 0 and answers[0]["sessionId"]:
        both.sessions = [answer["sessionId"] for answer in answers]
        both.session_epoch = epoch + 1


def list_offsets(dice: Random, both: Both) -> None:
    times = (-1, -2, -4, -5, -6, NOW, NOW + 1, 0, 1 << 62)
    plan = [
        (
            topic,
            [
                {
                    "partitionIndex": partition,
                    "timestamp": dice.choice(times),
                    "currentLeaderEpoch": dice.choice((-1, -1, 0, 2)),
                }
                for partition in some_partitions(dice)
            ],
        )
        for topic in some_topics(dice)
    ]
    level = dice.choice((0, 1))
    both.ask(
        "ListOffsets",
        dice.randint(1, 11),
        lambda which: {
            "replicaId": -1,
            "isolationLevel": level,
            "timeoutMs": 1000,
            "topics": [
                {"name": both.topics[t][which].name, "partitions": asked} for t, asked in plan
            ],
        },
        by("topics", "name", "partitions", "partitionIndex"),
    )


def delete_records(dice: Random, both: Both) -> None:
    topic, partition = dice.choice(range(4)), dice.choice(PARTITIONS)
    asked = [{"partitionIndex": partition, "offset": dice.choice((-1, 0, 1, 2, 3, 999, -2))}]
    both.ask(
        "DeleteRecords",
        dice.randint(0, 2),
        lambda which: {
            "timeoutMs": 1000,
            "topics": [{"name": both.topics[topic][which].name, "partitions": asked}],
        },
    )


LOG_MOVES = (
    *(produce,) * 5,
    *(fetch,) * 3,
    *(fetch_in_a_session,) * 3,
    list_offsets,
    delete_records,
)


# -- requests of group members ---------------------------------------------------------------------


def someone(dice: Random, both: Both, group: str) -> list[tuple[str, int]]:
    """(member id, generation) for each system, mostly of a real member and sometimes invented."""
    strangers = [("", -1), ("nobody", 3)]
    known = both.members.get(group, [("", -1)] * 2)
    chosen = dice.choice([[stranger] * 2 for stranger in strangers] + [known] * 4)
    shift = dice.choice((0, 0, 0, 0, 1, -1))
    return [(member, generation + shift) for member, generation in chosen]


def join(dice: Random, both: Both) -> None:
    group, known = dice.choice(both.groups), both.members
    member = known.get(group, [("", -1)] * 2)
    fields = {
        "sessionTimeoutMs": dice.choice((30_000, 30_000, 5)),
        "protocolType": dice.choice(("consumer", "consumer", "", "connect")),
        "protocols": [
            {"name": name, "metadata": b"m"}
            for name in dice.choice((["range"], ["range", "other"], []))
        ],
    }
    answers = both.ask(
        "JoinGroup",
        dice.randint(0, 9),
        lambda which: {
            "groupId": group,
            "rebalanceTimeoutMs": 300_000,
            "memberId": member[which][0],
            **fields,
        },
    )
    if answers[0]["errorCode"] in (0, 79):  # joined, or given a member id to join with
        known[group] = [(answer["memberId"], answer["generationId"]) for answer in answers]


def as_a_member(dice: Random, both: Both) -> None:
    group = dice.choice(both.groups)
    who = someone(dice, both, group)
    api, low, high = dice.choice(
        (("SyncGroup", 0, 5), ("Heartbeat", 0, 4), ("LeaveGroup", 0, 5), ("OffsetCommit", 2, 9))
    )
    topic, partition = dice.randrange(4), dice.choice(PARTITIONS)

    def body(which: int) -> Answer:
        member, generation = who[which]
        commit = [{"partitionIndex": partition, "committedOffset": 5, "committedMetadata": "m"}]
        values = {
            "groupId": group,
            "memberId": member,
            "generationId": generation,
            "generationIdOrMemberEpoch": generation,
            "members": [{"memberId": member}],
            "assignments": [{"memberId": member, "assignment": b"all"}],
            "topics": [{"name": both.topics[topic][which].name, "partitions": commit}],
        }
        return both.fields_of(api, values)

    both.ask(api, dice.randint(low, high), body)
    known = both.members.get(group)
    if api == "LeaveGroup" and known is not None and who[0][0] == known[0][0]:
        del both.members[group]


def ask_about_a_group(dice: Random, both: Both) -> None:
    group, topic = dice.choice(both.groups), dice.randrange(4)
    api, low, high = dice.choice(
        (("OffsetFetch", 1, 9), ("DescribeGroups", 0, 6), ("DeleteGroups", 0, 2))
    )

    def body(which: int) -> Answer:
        topics = [{"name": both.topics[topic][which].name, "partitionIndexes": [0, 1, 5]}]
        one = {"groupId": group, "topics": topics}
        groups = [one] if api == "OffsetFetch" else [group]
        values = {"groupId": group, "topics": topics, "groups": groups, "groupsNames": [group]}
        return both.fields_of(api, values)

    both.ask(api, dice.randint(low, high), body)


GROUP_MOVES = (join, join, as_a_member, as_a_member, as_a_member, ask_about_a_group)


# -- the tests of this module ----------------------------------------------------------------------


def converse(both: Both, moves: tuple[Callable[[Random, Both], None], ...]) -> None:
    dice = Random(both.seed)
    try:
        for _ in range(STEPS):
            dice.choice(moves)(dice, both)
    finally:
        both.hang_up()


@pytest.mark.parametrize("seed", [1, 2])
def test_logs(brokers: list[Broker], seed: int) -> None:
    converse(Both(brokers, seed), LOG_MOVES)


@pytest.mark.parametrize("seed", [3])
def test_groups(brokers: list[Broker], seed: int) -> None:
    both = Both(brokers, seed)
    for talk in both.talks:
        for group in both.groups:
            find = {"groupId": group, "topics": []}
            talk.quietly("FindCoordinator", 2, {"key": group, "keyType": 0})
            talk.until(
                lambda talk=talk, find=find: talk.quietly("OffsetFetch", 5, find)["errorCode"] == 0,
                "a coordinator",
            )
    converse(both, GROUP_MOVES)
