"""Tidelog gives the same answers as Apache Kafka, in every API and version that both support.

The answers of Apache Kafka are in golden/, recorded with

    pytest tests/clients/test_wire_parity.py --system kafka --record-golden

With `--system kafka` alone, the test checks that Apache Kafka still gives the recorded answers.
"""

import json
from collections.abc import Iterator

import pytest
from tests.clients import golden
from tests.clients.agreement import agrees, difference
from tests.clients.parity import (
    CASES,
    Case,
    administration,
    cluster,
    configs,
    consumer_groups,
    fetch,
    frames,
    groups,
    offsets,
    partitions,
    produce,
    producers,
    topics,
)
from tests.clients.schema import Schemas
from tests.clients.systems import Broker
from tests.clients.talk import Talk

FAMILIES = (
    administration,
    cluster,
    configs,
    consumer_groups,
    fetch,
    frames,
    groups,
    offsets,
    partitions,
    produce,
    producers,
    topics,
)

DIFFERENT = {
    ("Produce", "max_timestamp_lies"): "a broker that looked at every record would cost too much",
}
"""Cases in which Tidelog differs on purpose, and why. A case fails if it no longer differs."""

PROPERTIES = {
    "group.min.session.timeout.ms": 1000,
    "group.consumer.assignment.interval.ms": 0,
    "log.segment.delete.delay.ms": 100,
}


@pytest.fixture(scope="module")
def parity_broker(
    system: type[Broker], schemas: Schemas, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Broker]:
    """A separate broker for this module, because some answers list all topics."""
    broker = system(tmp_path_factory.mktemp("parity"), schemas, PROPERTIES)
    broker.format()
    broker.start()
    yield broker
    broker.kill()


@pytest.fixture(scope="module")
def advertised(parity_broker: Broker) -> dict[int, tuple[int, int]]:
    """API key -> the versions that this broker advertises."""
    with parity_broker.connect() as wire:
        answer = wire.ask("ApiVersions", 0, {})
    assert isinstance(answer, dict)
    return {api["apiKey"]: (api["minVersion"], api["maxVersion"]) for api in answer["apiKeys"]}


def versions_of(case: Case, schemas: Schemas, advertised: dict[int, tuple[int, int]]) -> list[int]:
    schema = schemas.request(case.api)
    low, high = advertised.get(schema.api_key, (0, -1))
    low = max(low, case.lowest, schema.versions.low)
    return list(range(low, min(high, case.highest, schema.versions.high) + 1))


def talk(broker: Broker, case: Case, version: int) -> golden.Transcript:
    talk = Talk(broker, case.name, case.api, version)
    try:
        case.run(talk)
    finally:
        talk.hang_up()
    return json.loads(json.dumps(talk.transcript))  # as if read from a golden file


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case.api}-{case.name}")
def test_answers_as_kafka_does(
    case: Case,
    parity_broker: Broker,
    schemas: Schemas,
    advertised: dict[int, tuple[int, int]],
    request: pytest.FixtureRequest,
) -> None:
    versions = versions_of(case, schemas, advertised)
    transcripts = {version: talk(parity_broker, case, version) for version in versions}
    assert parity_broker.is_alive(), parity_broker.log_text()[-3000:]
    if request.config.getoption("--record-golden"):
        assert parity_broker.name == "kafka", "golden answers are Apache Kafka's"
        golden.save(case.api, case.name, transcripts)
    recorded = golden.load(case.api)[case.name]
    wrong = [v for v in versions if v in recorded and not agrees(recorded[v], transcripts[v])]
    if parity_broker.name == "tidelog" and (case.api, case.name) in DIFFERENT:
        assert wrong, "this no longer differs: take it off the list of differences"
    elif wrong:
        shown = difference(recorded[wrong[0]], transcripts[wrong[0]])
        pytest.fail(
            f"{case.api} {case.name}: versions {wrong} differ; version {wrong[0]}:\n{shown}", False
        )


def test_speaks_the_versions_that_kafka_speaks(
    parity_broker: Broker,
    schemas: Schemas,
    advertised: dict[int, tuple[int, int]],
    request: pytest.FixtureRequest,
) -> None:
    """Tidelog has all of Kafka's versions of clients' APIs, and some versions of the other APIs."""
    spoken = {schemas.apis[key]: list(versions) for key, versions in sorted(advertised.items())}
    path = golden.DIRECTORY / "versions.json"
    if request.config.getoption("--record-golden"):
        path.write_text(json.dumps(spoken, indent=1) + "\n")
    kafka = json.loads(path.read_text())
    needed = {schemas.apis[key] for key in frames.CLIENT_APIS}
    assert {api: spoken.get(api) for api in needed} == {api: kafka[api] for api in needed}
    for api, (low, high) in spoken.items():
        assert api in kafka, f"Kafka's clients know no {api}"
        assert kafka[api][0] <= low <= high <= kafka[api][1], (
            f"{api}: {low} to {high}, Kafka {kafka[api]}"
        )
