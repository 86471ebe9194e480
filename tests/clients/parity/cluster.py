"""ApiVersions, DescribeCluster and DescribeLogDirs."""

from typing import Any

from tests.clients.batches import Batch
from tests.clients.parity import case
from tests.clients.talk import Talk


def without_lists(answer: dict[str, Any]) -> Any:
    """The answer without the lists of APIs and features, which may differ from Kafka's."""
    return {
        key: value
        for key, value in answer.items()
        if key
        not in ("apiKeys", "supportedFeatures", "finalizedFeatures", "finalizedFeaturesEpoch")
    }


@case("ApiVersions")
def says_what_it_speaks(t: Talk) -> None:
    answer = t.ask(
        {"clientSoftwareName": "parity", "clientSoftwareVersion": "1.0"}, only=without_lists
    )
    own = [api for api in answer["apiKeys"] if api["apiKey"] == 18]
    t.note(own)


@case("ApiVersions", lowest=3)
def odd_client_names(t: Talk) -> None:
    for name, version in (
        ("", ""),
        ("a b", "1"),
        ("-a", "1"),
        ("a", "1 "),
        ("a" * 300, "1"),
        ("é", "1"),
    ):
        t.ask({"clientSoftwareName": name, "clientSoftwareVersion": version}, only=without_lists)


@case("DescribeCluster")
def describes_the_cluster(t: Talk) -> None:
    t.ask({"includeClusterAuthorizedOperations": False})
    t.ask({"includeClusterAuthorizedOperations": True})


@case("DescribeCluster", lowest=1)
def endpoint_types(t: Talk) -> None:
    for kind in (1, 2, 3):
        t.ask({"includeClusterAuthorizedOperations": False, "endpointType": kind})


@case("DescribeCluster", lowest=2)
def fenced_brokers(t: Talk) -> None:
    t.ask({"includeFencedBrokers": True})


@case("DescribeLogDirs")
def sizes_on_disk(t: Talk) -> None:
    topic = t.topic(partitions=2)
    t.produce(topic, Batch(), Batch())
    t.ask({"topics": [{"topic": topic.name, "partitions": [0, 1]}]}, only=partitions_in_order)
    t.ask({"topics": [{"topic": topic.name, "partitions": [1]}]})


def partitions_in_order(answer: dict[str, Any]) -> Any:
    """Sort the partitions, because Kafka returns them in no fixed order."""
    for directory in answer["results"]:
        for topic in directory["topics"]:
            topic["partitions"].sort(key=lambda partition: partition["partitionIndex"])
    return answer


@case("DescribeLogDirs")
def unknown_on_disk(t: Talk) -> None:
    t.ask({"topics": [{"topic": "nowhere", "partitions": [0]}]})
    t.ask({"topics": []})


@case("DescribeLogDirs")
def everything_on_disk(t: Talk) -> None:
    topic = t.topic()
    t.produce(topic, Batch())
    t.ask(
        {"topics": None},
        only=lambda answer: [
            found
            for directory in answer["results"]
            for found in directory["topics"]
            if found["name"] == topic.name
        ],
    )
