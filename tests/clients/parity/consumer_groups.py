"""Consumer groups (KIP-848): heartbeats, descriptions, and other APIs about such groups."""

from typing import Any
from uuid import UUID

from tests.clients.parity import case, groups
from tests.clients.parity.groups import RETRIABLE, committing, fetching_offsets, joining
from tests.clients.talk import Talk, Topic

HEARTBEAT = 0
"""The version of ConsumerGroupHeartbeat with which a case prepares its groups."""

MEMBERS = ("member-one", "member-two", "member-three")
SUBSCRIPTION = "0001" + "00000001" + "{length:04x}{name}" + "ffffffff" + "00000000"
"""A subscription of the embedded consumer protocol in version 1, to one topic."""


def group_of(t: Talk) -> str:
    """A group whose coordinator has loaded."""
    group = groups.group_of(t)
    beat = beats(group, "nobody", 5)

    def has_loaded() -> bool:
        answer = t.quietly("ConsumerGroupHeartbeat", HEARTBEAT, beat)
        return answer["errorCode"] not in RETRIABLE

    t.until(has_loaded, "the coordinator to load")
    return group


def joins(group: str, member: str, topic: Topic | None, **fields: Any) -> dict[str, Any]:
    return {
        "groupId": group,
        "memberId": member,
        "memberEpoch": 0,
        "rebalanceTimeoutMs": 30000,
        "subscribedTopicNames": [] if topic is None else [topic.name],
        "topicPartitions": [],
        **fields,
    }


def beats(group: str, member: str, epoch: int, **fields: Any) -> dict[str, Any]:
    return {"groupId": group, "memberId": member, "memberEpoch": epoch, **fields}


def owning(topic: Topic, *partitions: int) -> dict[str, Any]:
    owned = [{"topicId": topic.id, "partitions": list(partitions)}] if partitions else []
    return {"topicPartitions": owned}


def member_of(t: Talk, group: str, topic: Topic, member: str = MEMBERS[0], **fields: Any) -> int:
    """Join a group and take the assignment; return the epoch."""
    answer = t.quietly("ConsumerGroupHeartbeat", HEARTBEAT, joins(group, member, topic, **fields))
    assert answer["errorCode"] == 0, answer
    return int(answer["memberEpoch"])


def classic(group: str, topic: Topic, member: str = "") -> dict[str, Any]:
    """A join with the classic protocol and a valid embedded subscription."""
    name = topic.name.encode()
    metadata = bytes.fromhex(SUBSCRIPTION.format(length=len(name), name=name.hex()))
    return joining(group, member, protocols=[{"name": "range", "metadata": metadata}])


# -- ConsumerGroupHeartbeat ------------------------------------------------------------------------


@case("ConsumerGroupHeartbeat")
def joins_stays_and_leaves(t: Talk) -> None:
    topic, group = t.topic(partitions=3), group_of(t)
    epoch = t.ask(joins(group, MEMBERS[0], topic))["memberEpoch"]
    t.ask(beats(group, MEMBERS[0], epoch, **owning(topic, 0, 1, 2)))
    t.ask(beats(group, MEMBERS[0], epoch))
    full = {"rebalanceTimeoutMs": 30000, "subscribedTopicNames": [topic.name]}
    t.ask(beats(group, MEMBERS[0], epoch, **full, **owning(topic, 0, 1, 2)))
    t.ask(beats(group, MEMBERS[0], -1))
    t.ask(beats(group, MEMBERS[0], epoch))


@case("ConsumerGroupHeartbeat")
def revokes_before_it_assigns(t: Talk) -> None:
    topic, group = t.topic(partitions=4), group_of(t)
    first = t.ask(joins(group, MEMBERS[0], topic))["memberEpoch"]
    second = t.ask(joins(group, MEMBERS[1], topic))["memberEpoch"]
    kept = t.ask(beats(group, MEMBERS[0], first, **owning(topic, 0, 1, 2, 3)))
    t.ask(beats(group, MEMBERS[1], second))
    parts = kept["assignment"]["topicPartitions"][0]["partitions"]
    t.ask(beats(group, MEMBERS[0], first, **owning(topic, *parts)))
    t.ask(beats(group, MEMBERS[1], second))
    t.ask(beats(group, MEMBERS[0], first, **owning(topic, *parts)))


@case("ConsumerGroupHeartbeat")
def refuses_what_is_not_valid(t: Talk) -> None:
    topic, group = t.topic(), group_of(t)
    one = MEMBERS[0]
    t.ask(joins("", one, topic))
    t.ask(joins(group, "", topic, memberEpoch=-1))
    t.ask(joins(group, one, topic, instanceId=""))
    t.ask(joins(group, one, topic, rackId=""))
    t.ask(joins(group, one, topic, rebalanceTimeoutMs=-1))
    t.ask(joins(group, one, topic, topicPartitions=None))
    t.ask(joins(group, one, topic, subscribedTopicNames=None))
    t.ask(joins(group, one, topic, serverAssignor="alien"))
    t.ask(beats(group, one, -2))
    t.ask(beats(group, one, -3))
    t.ask(beats(group, one, 5))
    t.ask(beats(group, one, -1))


@case("ConsumerGroupHeartbeat")
def fences_wrong_epochs(t: Talk) -> None:
    topic, group = t.topic(partitions=2), group_of(t)
    epoch = t.ask(joins(group, MEMBERS[0], topic))["memberEpoch"]
    t.ask(beats(group, MEMBERS[0], epoch + 1))
    t.ask(beats(group, MEMBERS[0], epoch - 1))
    t.ask(beats(group, "nobody", epoch))
    t.ask(joins(group, MEMBERS[0], topic))


@case("ConsumerGroupHeartbeat")
def replaces_static_members(t: Talk) -> None:
    topic, group = t.topic(partitions=2), group_of(t)
    one, two = MEMBERS[:2]
    epoch = t.ask(joins(group, one, topic, instanceId="i"))["memberEpoch"]
    t.ask(joins(group, two, topic, instanceId="i"))
    t.ask(beats(group, one, -2, instanceId="i"))
    t.ask(joins(group, two, topic, instanceId="i"))
    t.ask(beats(group, one, epoch, instanceId="i"))
    t.ask(beats(group, one, epoch, instanceId="other"))
    t.ask(beats(group, two, -1, instanceId="i"))


@case("ConsumerGroupHeartbeat")
def assigns_with_range(t: Talk) -> None:
    topic, other, group = t.topic(partitions=3), t.topic(partitions=2), group_of(t)
    names = [topic.name, other.name, "nowhere"]
    fields = {"serverAssignor": "range", "subscribedTopicNames": names}

    def in_order(answer: dict[str, Any]) -> dict[str, Any]:
        assigned = answer["assignment"]["topicPartitions"]
        by_id: dict[UUID, Any] = {part["topicId"]: part["partitions"] for part in assigned}
        ordered = [by_id.get(one.id) for one in (topic, other)]
        return {**answer, "assignment": ordered}

    t.ask(joins(group, MEMBERS[0], topic, **fields), only=in_order)


@case("ConsumerGroupHeartbeat", lowest=1)
def matches_regular_expressions(t: Talk) -> None:
    topic, group, member = t.topic(partitions=2), group_of(t), MEMBERS[0]
    fields = {"subscribedTopicRegex": topic.name, "subscribedTopicNames": None}
    epoch = t.ask(joins(group, member, topic, **fields))["memberEpoch"]
    answer: dict[str, Any] = {}

    def is_assigned() -> bool:
        answer.update(t.quietly("ConsumerGroupHeartbeat", 1, beats(group, member, epoch)))
        return bool(answer["assignment"])

    t.until(is_assigned, "the expression to be matched")
    t.note(answer)
    t.ask(joins(group, MEMBERS[1], topic, subscribedTopicRegex="(a"))


# -- ConsumerGroupDescribe -------------------------------------------------------------------------


@case("ConsumerGroupDescribe")
def describes_consumer_groups(t: Talk) -> None:
    topic, group, old = t.topic(partitions=2), group_of(t), group_of(t)
    member_of(t, group, topic, rackId="rack")
    t.ask({"groupIds": [group]})
    t.ask({"groupIds": [group], "includeAuthorizedOperations": True})
    member_of(t, group, topic, MEMBERS[1])
    t.ask({"groupIds": [group, t.name(), ""]}, only=_without_members)
    t.quietly("JoinGroup", 3, joining(old))
    t.ask({"groupIds": [old]})
    t.ask({"groupIds": []})


def _without_members(answer: dict[str, Any]) -> dict[str, Any]:
    """Kafka lists members and groups in the order of its hash table."""
    found = [{**group, "members": len(group["members"])} for group in answer["groups"]]
    return {**answer, "groups": sorted(found, key=lambda group: str(group["groupId"]))}


# -- Other APIs ------------------------------------------------------------------------------------


@case("ListGroups")
def lists_consumer_groups(t: Talk) -> None:
    topic, group = t.topic(), group_of(t)
    member_of(t, group, topic)

    def mine(answer: dict[str, Any]) -> Any:
        return {**answer, "groups": [g for g in answer["groups"] if g["groupId"] == group]}

    t.ask({}, only=mine)
    for states in (["Stable"], ["stable"], ["Empty"]):
        t.ask({"statesFilter": states}, only=mine)
    for types in (["consumer"], ["Consumer"], ["classic"]):
        t.ask({"typesFilter": types}, only=mine)


@case("DescribeGroups")
def describes_a_consumer_group_as_unknown(t: Talk) -> None:
    topic, group = t.topic(), group_of(t)
    member_of(t, group, topic)
    t.ask({"groups": [group]})


@case("DeleteGroups")
def deletes_consumer_groups(t: Talk) -> None:
    topic, group = t.topic(), group_of(t)
    member_of(t, group, topic)
    t.ask({"groupsNames": [group]})
    t.quietly("ConsumerGroupHeartbeat", HEARTBEAT, beats(group, MEMBERS[0], -1))
    t.ask({"groupsNames": [group]})


@case("OffsetCommit")
def commits_in_a_consumer_group(t: Talk) -> None:
    topic, group, member = t.topic(partitions=2), group_of(t), MEMBERS[0]
    epoch = member_of(t, group, topic)
    for sent in (epoch, epoch + 1, epoch - 1, -1):
        t.ask(committing(group, topic, generationIdOrMemberEpoch=sent, memberId=member))
    t.ask(committing(group, topic, generationIdOrMemberEpoch=epoch, memberId="nobody"))
    t.ask(committing(group, topic))


@case("OffsetFetch", lowest=9)
def fetches_in_a_consumer_group(t: Talk) -> None:
    topic, group, member = t.topic(partitions=2), group_of(t), MEMBERS[0]
    epoch = member_of(t, group, topic)
    for identity in (
        {"memberId": member, "memberEpoch": epoch},
        {"memberId": member, "memberEpoch": epoch + 1},
        {"memberId": "nobody", "memberEpoch": epoch},
        {"memberId": None, "memberEpoch": -1},
    ):
        asked = fetching_offsets(group, topic, 0)
        asked["groups"][0].update(identity)
        t.ask(asked)


@case("JoinGroup", lowest=4)
def joins_a_consumer_group(t: Talk) -> None:
    topic, group = t.topic(partitions=2), group_of(t)
    member_of(t, group, topic)
    required = t.ask(classic(group, topic))
    joined = t.ask(classic(group, topic, required["memberId"]))
    about = {
        "groupId": group,
        "memberId": joined["memberId"],
        "generationId": joined["generationId"],
    }
    sync = {**about, "protocolType": "consumer", "protocolName": "range", "assignments": []}
    t.ask_other("SyncGroup", 5, sync)
    t.ask_other("Heartbeat", 4, about)
    t.ask_other("Heartbeat", 4, {**about, "generationId": 99})
    t.ask(joining(group, protocolType="connect"))
    leaving = {"groupId": group, "members": [{"memberId": joined["memberId"]}]}
    t.ask_other("LeaveGroup", 5, leaving)


@case("IncrementalAlterConfigs")
def configures_groups(t: Talk) -> None:
    group = t.name()

    def change(name: str, value: str) -> None:
        pairs = [{"name": name, "configOperation": 0, "value": value}]
        resource = {"resourceType": 32, "resourceName": group, "configs": pairs}
        t.ask({"resources": [resource]})

    change("consumer.session.timeout.ms", "50000")
    change("consumer.heartbeat.interval.ms", "6000")
    change("consumer.assignment.interval.ms", "2000")
    change("consumer.session.timeout.ms", "1")
    change("consumer.heartbeat.interval.ms", "60000")
    change("consumer.assignment.interval.ms", "16000")
    change("consumer.alien", "1")
