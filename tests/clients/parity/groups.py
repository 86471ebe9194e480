"""Classic consumer groups: coordinators, joins, syncs, heartbeats, leaves, offsets, lists."""

import time
from typing import Any
from uuid import UUID

from tests.clients.parity import case
from tests.clients.talk import PATIENCE, Talk, Topic

RETRIABLE = (14, 15, 16)
"""Errors after which a client retries: the coordinator is loading, unavailable or elsewhere."""
NOWHERE = UUID("00000000-0000-0000-0000-0000deadbeef")


def ready(t: Talk, group: str) -> None:
    """Wait until the coordinator of this group answers requests."""
    deadline = time.monotonic() + PATIENCE
    while time.monotonic() < deadline:
        found = t.quietly("FindCoordinator", 2, {"key": group, "keyType": 0})
        if found["errorCode"] == 0:
            beat = {"groupId": group, "generationId": 1, "memberId": "nobody"}
            if t.quietly("Heartbeat", 3, beat)["errorCode"] not in RETRIABLE:
                return
        time.sleep(0.02)
    raise AssertionError(f"no coordinator for {group}")


def group_of(t: Talk) -> str:
    group = t.name()
    ready(t, group)
    return group


def joining(group: str, member: str = "", **fields: Any) -> dict[str, Any]:
    return {
        "groupId": group,
        "sessionTimeoutMs": 30000,
        "rebalanceTimeoutMs": 30000,
        "memberId": member,
        "protocolType": "consumer",
        "protocols": [{"name": "range", "metadata": b"abc"}, {"name": "other", "metadata": b""}],
        **fields,
    }


def member_of(t: Talk, group: str) -> tuple[str, int]:
    """Join as the only member and take an assignment; return the member id and the generation."""
    joined = t.quietly("JoinGroup", 3, joining(group))
    assert joined["errorCode"] == 0, joined
    member, generation = joined["memberId"], joined["generationId"]
    assignment = [{"memberId": member, "assignment": b"all"}]
    synced = t.quietly(
        "SyncGroup",
        2,
        {
            "groupId": group,
            "generationId": generation,
            "memberId": member,
            "assignments": assignment,
        },
    )
    assert synced["errorCode"] == 0, synced
    return member, generation


# -- FindCoordinator -------------------------------------------------------------------------------


def finding(key: str, kind: int = 0) -> dict[str, Any]:
    return {"key": key, "keyType": kind, "coordinatorKeys": [key]}


@case("FindCoordinator")
def of_a_group(t: Talk) -> None:
    ready(t, "anyone")
    t.ask(finding("anyone"))
    t.ask(finding(""))


@case("FindCoordinator", lowest=4)
def of_many_groups(t: Talk) -> None:
    ready(t, "anyone")
    t.ask({"keyType": 0, "coordinatorKeys": ["a", "b", "a"]})
    t.ask({"keyType": 0, "coordinatorKeys": []})


@case("FindCoordinator", lowest=1)
def of_unknown_kinds(t: Talk) -> None:
    for kind in (3, 99, -1):
        t.ask(finding("x", kind))


# -- JoinGroup, SyncGroup --------------------------------------------------------------------------


@case("JoinGroup")
def joins_alone(t: Talk) -> None:
    group = group_of(t)
    answer = t.ask(joining(group))
    if answer["errorCode"] == 79:  # MEMBER_ID_REQUIRED: join again with this id
        answer = t.ask(joining(group, answer["memberId"]))
    t.ask(joining(group, answer["memberId"]))


@case("JoinGroup")
def join_refused(t: Talk) -> None:
    group = group_of(t)
    t.ask(joining(""))
    t.ask(joining(group, "nobody"))
    t.ask(joining(group, sessionTimeoutMs=1))
    t.ask(joining(group, sessionTimeoutMs=2**31 - 1))
    t.ask(joining(group, protocols=[]))
    t.ask(joining(group, protocolType=""))


@case("JoinGroup")
def join_with_other_protocols(t: Talk) -> None:
    group = group_of(t)
    member_of(t, group)
    t.ask(joining(group, protocolType="connect"))
    t.ask(joining(group, protocols=[{"name": "alien", "metadata": b""}]))


@case("JoinGroup", lowest=5)
def static_member(t: Talk) -> None:
    group = group_of(t)
    first = t.ask(joining(group, groupInstanceId="static"))
    t.ask(joining(group, first["memberId"], groupInstanceId="static"))
    t.ask(joining(group, "other", groupInstanceId="static"))


def syncing(group: str, generation: int, member: str, **fields: Any) -> dict[str, Any]:
    return {
        "groupId": group,
        "generationId": generation,
        "memberId": member,
        "protocolType": "consumer",
        "protocolName": "range",
        "assignments": [{"memberId": member, "assignment": b"all"}],
        **fields,
    }


@case("SyncGroup")
def syncs(t: Talk) -> None:
    group = group_of(t)
    joined = t.quietly("JoinGroup", 3, joining(group))
    member, generation = joined["memberId"], joined["generationId"]
    t.ask(syncing(group, generation, member))
    t.ask(syncing(group, generation, member, assignments=[]))


@case("SyncGroup")
def sync_refused(t: Talk) -> None:
    group = group_of(t)
    member, generation = member_of(t, group)
    t.ask(syncing(group, generation + 1, member))
    t.ask(syncing(group, generation - 1, member))
    t.ask(syncing(group, generation, "nobody"))
    t.ask(syncing(t.name(), generation, member))
    t.ask(syncing("", generation, member))
    t.ask(syncing(group, generation, member, protocolName="other"))
    t.ask(syncing(group, generation, member, protocolType="connect"))


# -- Heartbeat, LeaveGroup -------------------------------------------------------------------------


def beating(group: str, generation: int, member: str) -> dict[str, Any]:
    return {"groupId": group, "generationId": generation, "memberId": member}


@case("Heartbeat")
def heartbeats(t: Talk) -> None:
    group = group_of(t)
    member, generation = member_of(t, group)
    t.ask(beating(group, generation, member))
    t.ask(beating(group, generation + 1, member))
    t.ask(beating(group, generation - 1, member))
    t.ask(beating(group, generation, "nobody"))
    t.ask(beating("", generation, member))
    t.ask(beating(t.name(), generation, member))


@case("LeaveGroup")
def leaves(t: Talk) -> None:
    group = group_of(t)
    member, generation = member_of(t, group)

    def leaving(group: str, member: str) -> dict[str, Any]:
        return {"groupId": group, "memberId": member, "members": [{"memberId": member}]}

    t.ask(leaving(group, "nobody"))
    t.ask(leaving(group, member))
    t.ask(leaving(group, member))
    t.ask(leaving("", member))
    t.ask(leaving(t.name(), member))
    t.ask_other("Heartbeat", 3, beating(group, generation, member))


# -- OffsetCommit, OffsetFetch ---------------------------------------------------------------------


def committing(
    group: str,
    topic: Topic,
    offset: int = 5,
    partition: int = 0,
    metadata: str | None = "m",
    **f: Any,
) -> dict[str, Any]:
    partitions = [
        {"partitionIndex": partition, "committedOffset": offset, "committedMetadata": metadata}
    ]
    return {
        "groupId": group,
        "generationIdOrMemberEpoch": -1,
        "memberId": "",
        "topics": [{"name": topic.name, "topicId": topic.id, "partitions": partitions}],
        **f,
    }


def fetching_offsets(
    group: str, topic: Topic | None, *partitions: int, **fields: Any
) -> dict[str, Any]:
    by_name = by_id = None
    if topic is not None:
        by_name = [{"name": topic.name, "partitionIndexes": list(partitions)}]
        by_id = [{**by_name[0], "topicId": topic.id}]
    return {
        "groupId": group,
        "topics": by_name,
        "groups": [{"groupId": group, "topics": by_id}],
        **fields,
    }


@case("OffsetCommit")
def commits_without_a_member(t: Talk) -> None:
    topic, group = t.topic(partitions=2), group_of(t)
    t.ask(committing(group, topic))
    t.ask(committing(group, topic, offset=0, partition=1, metadata=""))
    t.ask_other("OffsetFetch", 5, fetching_offsets(group, topic, 0, 1))


@case("OffsetCommit")
def commits_as_a_member(t: Talk) -> None:
    topic, group = t.topic(), group_of(t)
    member, generation = member_of(t, group)
    t.ask(committing(group, topic, generationIdOrMemberEpoch=generation, memberId=member))
    t.ask(committing(group, topic, generationIdOrMemberEpoch=generation + 1, memberId=member))
    t.ask(committing(group, topic, generationIdOrMemberEpoch=generation, memberId="nobody"))
    t.ask(committing(group, topic))
    t.ask_other("OffsetFetch", 5, fetching_offsets(group, topic, 0))


@case("OffsetCommit")
def commit_refused(t: Talk) -> None:
    topic, group = t.topic(), group_of(t)
    t.ask(committing(group, Topic("nowhere", NOWHERE)))
    t.ask(committing(group, topic, partition=7))
    t.ask(committing(group, topic, partition=-1))
    t.ask(committing(group, topic, metadata="x" * 4097))
    t.ask(committing("", topic))
    t.ask(committing(group, topic, generationIdOrMemberEpoch=3, memberId="x"))
    t.ask({"groupId": group, "generationIdOrMemberEpoch": -1, "memberId": "", "topics": []})


@case("OffsetCommit")
def commit_odd_offsets(t: Talk) -> None:
    topic, group = t.topic(), group_of(t)
    for offset in (2**63 - 1, -1, -7):
        t.ask(committing(group, topic, offset=offset))
        t.ask_other("OffsetFetch", 5, fetching_offsets(group, topic, 0))


@case("OffsetFetch")
def fetches_offsets(t: Talk) -> None:
    topic, group = t.topic(partitions=2), group_of(t)
    t.quietly("OffsetCommit", 7, committing(group, topic, 42))
    t.ask(fetching_offsets(group, topic, 0, 1))
    t.ask(fetching_offsets(group, topic, 7))
    t.ask(fetching_offsets(group, topic))
    t.ask(fetching_offsets(group, Topic("nowhere", NOWHERE), 0))


@case("OffsetFetch", lowest=2)
def fetches_all_offsets(t: Talk) -> None:
    topic, group = t.topic(partitions=2), group_of(t)
    t.quietly("OffsetCommit", 7, committing(group, topic, 42))
    t.ask(fetching_offsets(group, None))


@case("OffsetFetch")
def fetches_offsets_of_nobody(t: Talk) -> None:
    topic, group = t.topic(), group_of(t)
    t.ask(fetching_offsets(group, topic, 0))
    t.ask(fetching_offsets("", topic, 0))


@case("OffsetFetch", lowest=8)
def fetches_offsets_of_many(t: Talk) -> None:
    topic, group, other = t.topic(), group_of(t), group_of(t)
    t.quietly("OffsetCommit", 7, committing(group, topic, 42))
    wanted = [{"name": topic.name, "topicId": topic.id, "partitionIndexes": [0]}]
    t.ask({"groups": [{"groupId": group, "topics": wanted}, {"groupId": other, "topics": None}]})
    t.ask({"groups": []})


# -- listing, describing and deleting groups -------------------------------------------------------


@case("DescribeGroups")
def describes_groups(t: Talk) -> None:
    group = group_of(t)
    member, _ = member_of(t, group)
    t.ask({"groups": [group]})
    t.ask({"groups": [group], "includeAuthorizedOperations": True})
    t.ask({"groups": [t.name()]})
    t.ask({"groups": [""]})
    t.quietly("LeaveGroup", 1, {"groupId": group, "memberId": member})
    t.ask({"groups": [group]})


@case("ListGroups")
def lists_groups(t: Talk) -> None:
    group = group_of(t)
    member_of(t, group)

    def mine(answer: dict[str, Any]) -> Any:
        return {**answer, "groups": [g for g in answer["groups"] if g["groupId"] == group]}

    t.ask({}, only=mine)
    for states in (["Stable"], ["Empty"], ["nonsense"]):
        t.ask({"statesFilter": states}, only=mine)
    for types in (["classic"], ["consumer"]):
        t.ask({"typesFilter": types}, only=mine)


@case("DeleteGroups")
def deletes_groups(t: Talk) -> None:
    topic, group, used = t.topic(), group_of(t), group_of(t)
    t.quietly("OffsetCommit", 7, committing(group, topic, 42))
    member_of(t, used)
    t.ask({"groupsNames": [group]})
    t.ask({"groupsNames": [group]})
    t.ask({"groupsNames": [used]})
    t.ask({"groupsNames": [""]})
    t.ask_other("OffsetFetch", 5, fetching_offsets(group, topic, 0))
