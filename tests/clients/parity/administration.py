"""Requests of administrators: elections, reassignments, OffsetDelete, ACLs, features, quorum."""

from typing import Any

from tests.clients.parity import case
from tests.clients.parity.groups import committing, fetching_offsets, group_of, member_of
from tests.clients.talk import Talk

PREFERRED, UNCLEAN = 0, 1
ANY = 1
"""The value "any" of a resource type, an operation or a permission."""
METADATA = "__cluster_metadata"

# -- ElectLeaders ----------------------------------------------------------------------------------


def electing(topic: str, *partitions: int, kind: int = PREFERRED) -> dict[str, Any]:
    asked = [{"topic": topic, "partitions": list(partitions)}]
    return {"electionType": kind, "topicPartitions": asked, "timeoutMs": 30000}


@case("ElectLeaders")
def elects_who_leads_already(t: Talk) -> None:
    topic = t.topic(partitions=2)
    t.ask(electing(topic.name, 0))
    t.ask(electing(topic.name, 1, kind=UNCLEAN))


@case("ElectLeaders")
def elects_where_there_is_nothing(t: Talk) -> None:
    topic = t.topic()
    t.ask(electing(topic.name, 5))
    t.ask(electing(topic.name, -1))
    t.ask(electing(t.name(), 0))
    t.ask(electing("", 0))
    t.ask(electing("../..", 0))


@case("ElectLeaders")
def elects_nothing(t: Talk) -> None:
    topic = t.topic()
    t.ask(electing(topic.name))
    t.ask({"electionType": PREFERRED, "topicPartitions": [], "timeoutMs": 30000})

    def mine(answer: dict[str, Any]) -> Any:
        return [r for r in answer["replicaElectionResults"] if r["topic"] == topic.name]

    for kind in (PREFERRED, UNCLEAN):
        t.ask({"electionType": kind, "topicPartitions": None, "timeoutMs": 30000}, only=mine)


# -- Reassignments ---------------------------------------------------------------------------------


def reassigning(topic: str, replicas: list[int] | None, partition: int = 0) -> dict[str, Any]:
    partitions = [{"partitionIndex": partition, "replicas": replicas}]
    return {"timeoutMs": 30000, "topics": [{"name": topic, "partitions": partitions}]}


@case("AlterPartitionReassignments")
def reassigns_to_itself(t: Talk) -> None:
    topic = t.topic()
    t.ask(reassigning(topic.name, [1]))
    t.ask_other("Metadata", None, {"topics": [{"name": topic.name}]})


@case("AlterPartitionReassignments")
def reassigns_in_vain(t: Talk) -> None:
    topic = t.topic()
    for replicas in (None, [], [99], [1, 1], [-1], [1, 99]):
        t.ask(reassigning(topic.name, replicas))
    t.ask(reassigning(topic.name, [1], partition=7))
    t.ask(reassigning(t.name(), [1]))
    t.ask(reassigning(t.name(), None))
    t.ask({"timeoutMs": 30000, "topics": []})


@case("ListPartitionReassignments")
def no_reassignment_under_way(t: Talk) -> None:
    topic = t.topic()
    for topics in (
        None,
        [],
        [{"name": topic.name, "partitionIndexes": [0, 9]}],
        [{"name": "nowhere", "partitionIndexes": [0]}],
    ):
        t.ask({"timeoutMs": 30000, "topics": topics})


# -- OffsetDelete ----------------------------------------------------------------------------------


def deleting(group: str, topic: str, *partitions: int) -> dict[str, Any]:
    indexes = [{"partitionIndex": index} for index in partitions]
    return {"groupId": group, "topics": [{"name": topic, "partitions": indexes}]}


@case("OffsetDelete")
def deletes_offsets(t: Talk) -> None:
    topic, group = t.topic(partitions=2), group_of(t)
    t.quietly("OffsetCommit", 7, committing(group, topic, 42))
    t.ask(deleting(group, topic.name, 0, 1))
    t.ask_other("OffsetFetch", 5, fetching_offsets(group, topic, 0, 1))
    t.ask(deleting(group, topic.name, 0))


@case("OffsetDelete")
def deletes_offsets_of_nothing(t: Talk) -> None:
    topic, group = t.topic(), group_of(t)
    t.ask(deleting(group, topic.name, 0))
    t.quietly("OffsetCommit", 7, committing(group, topic, 42))
    t.ask(deleting(group, topic.name, 7))
    t.ask(deleting(group, "nowhere", 0))
    t.ask(deleting("", topic.name, 0))
    t.ask({"groupId": group, "topics": []})


@case("OffsetDelete")
def deletes_offsets_of_a_group_at_work(t: Talk) -> None:
    topic, group = t.topic(), group_of(t)
    member, generation = member_of(t, group)
    fields = {"generationIdOrMemberEpoch": generation, "memberId": member}
    t.quietly("OffsetCommit", 7, committing(group, topic, 42, **fields))
    t.ask(deleting(group, topic.name, 0))


# -- ACLs ------------------------------------------------------------------------------------------


def matching(**fields: Any) -> dict[str, Any]:
    everything = {
        "resourceTypeFilter": ANY,
        "resourceNameFilter": None,
        "patternTypeFilter": ANY,
        "principalFilter": None,
        "hostFilter": None,
        "operation": ANY,
        "permissionType": ANY,
    }
    return {**everything, **fields}


@case("DescribeAcls")
def no_acls(t: Talk) -> None:
    t.ask(matching())
    t.ask(matching(resourceTypeFilter=2, resourceNameFilter="t", patternTypeFilter=3))


@case("CreateAcls")
def no_acl_is_made(t: Talk) -> None:
    acl = {
        "resourceType": 2,
        "resourceName": "t",
        "resourcePatternType": 3,
        "principal": "User:anyone",
        "host": "*",
        "operation": 3,
        "permissionType": 3,
    }
    t.ask({"creations": [acl, acl]})
    t.ask({"creations": []})


@case("DeleteAcls")
def no_acl_is_deleted(t: Talk) -> None:
    t.ask({"filters": [matching(), matching()]})
    t.ask({"filters": []})


# -- Features, brokers, the quorum -----------------------------------------------------------------


def updating(feature: str, level: int, **fields: Any) -> dict[str, Any]:
    update = {"feature": feature, "maxVersionLevel": level, "upgradeType": 1, **fields}
    return {"timeoutMs": 30000, "featureUpdates": [update]}


@case("UpdateFeatures")
def features_that_cannot_be(t: Talk) -> None:
    t.ask(updating("no.such.feature", 1))
    t.ask(updating("", 1))
    t.ask(updating("metadata.version", 30000))
    t.ask(updating("metadata.version", 1))
    t.ask(updating("metadata.version", 0))


@case("UpdateFeatures", lowest=1)
def features_of_an_odd_kind(t: Talk) -> None:
    t.ask(updating("metadata.version", 7, upgradeType=2))
    t.ask(updating("group.version", 1, upgradeType=9))
    t.ask({**updating("no.such.feature", 1), "validateOnly": True})


@case("UpdateFeatures")
def no_features(t: Talk) -> None:
    t.ask({"timeoutMs": 30000, "featureUpdates": []})


@case("UnregisterBroker")
def unknown_broker(t: Talk) -> None:
    t.ask({"brokerId": 99})
    t.ask({"brokerId": -1})


@case("DescribeQuorum")
def the_quorum(t: Talk) -> None:
    t.ask(
        {"topics": [{"topicName": METADATA, "partitions": [{"partitionIndex": 0}]}]},
        only=without_offsets,
    )


def without_offsets(answer: dict[str, Any]) -> Any:
    """The answer without offsets and epochs of the metadata log, which differ from run to run."""
    for topic in answer["topics"]:
        for partition in topic["partitions"]:
            assert partition["leaderEpoch"] >= 0
            assert partition["highWatermark"] >= 0
            del partition["leaderEpoch"], partition["highWatermark"]
            for replica in partition["currentVoters"] + partition["observers"]:
                for key in ("logEndOffset", "lastFetchTimestamp", "lastCaughtUpTimestamp"):
                    replica.pop(key, None)
    return answer


@case("DescribeQuorum")
def no_such_quorum(t: Talk) -> None:
    topic = t.topic()
    for name, partition in ((METADATA, 1), (METADATA, -1), (topic.name, 0), ("nowhere", 0)):
        t.ask({"topics": [{"topicName": name, "partitions": [{"partitionIndex": partition}]}]})
    t.ask({"topics": []})


@case("ListConfigResources", lowest=1)
def resources_of_kinds(t: Talk) -> None:
    for kinds in ([2], [4], [8], [16], [32], [2, 4], [0], [77]):
        t.ask({"resourceTypes": kinds}, only=but_topics)


@case("ListConfigResources")
def resources(t: Talk) -> None:
    topic = t.topic()
    mine = t.ask({"resourceTypes": []}, only=but_topics)
    t.note([found for found in mine["configResources"] if found["resourceName"] == topic.name])


def but_topics(answer: dict[str, Any]) -> Any:
    """The answer without topics and groups, whose number depends on the other cases."""
    resource_types = sorted({found.get("resourceType", 16) for found in answer["configResources"]})
    brokers = [r for r in answer["configResources"] if r.get("resourceType", 16) in (4, 8)]
    return [
        answer["errorCode"],
        resource_types,
        sorted(brokers, key=lambda found: found["resourceType"]),
    ]
