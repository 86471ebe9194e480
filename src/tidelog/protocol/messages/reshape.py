"""Converts messages whose structure has changed from old versions to the canonical shape, and back.

In most cases a single value became a list. Each entry of `RESHAPES` names kio's class as
`api.kind.Class`, the versions that have the old shape, and two functions that return the fields to
set. `up` takes the old message, and `down` takes the canonical message. A nested message in the
result is a mapping, or a message whose fields match by name.
"""

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple, TypeAlias

from tidelog.model.errors import ErrorCode

Fields: TypeAlias = Mapping[str, Any]


class Reshape(NamedTuple):
    versions: range
    up: Callable[[Any], Fields]
    down: Callable[[Any], Fields]


def _one(elements: tuple[Any, ...]) -> Any:
    """The only element of a list that is a single value in old versions."""
    assert len(elements) == 1, elements
    return elements[0]


def _nothing(_: Any) -> Fields:
    return {}


# -- Group APIs ------------------------------------------------------------------------------------


def _find_coordinator_request_down(new: Any) -> Fields:
    return {"key": _one(new.coordinator_keys)}


def _find_coordinator_response_up(old: Any) -> Fields:
    coordinator = {
        "node_id": old.node_id,
        "host": old.host,
        "port": old.port,
        "error_code": old.error_code,
        "error_message": getattr(old, "error_message", None),  # not in version 0
    }
    return {"coordinators": (coordinator,)}


def _find_coordinator_response_down(new: Any) -> Fields:
    found = _one(new.coordinators)
    return {
        "node_id": found.node_id,
        "host": found.host,
        "port": found.port,
        "error_code": found.error_code,
        "error_message": found.error_message,
    }


def _offset_fetch_request_up(old: Any) -> Fields:
    return {"groups": ({"group_id": old.group_id, "topics": old.topics},)}


def _offset_fetch_request_down(new: Any) -> Fields:
    group = _one(new.groups)
    return {"group_id": group.group_id, "topics": group.topics}


def _offset_fetch_response_up(old: Any) -> Fields:
    error = getattr(old, "error_code", ErrorCode.none)  # not in version 1
    return {"groups": ({"group_id": "", "topics": old.topics, "error_code": error},)}


def _offset_fetch_response_down(new: Any) -> Fields:
    group = _one(new.groups)
    return {"topics": group.topics, "error_code": group.error_code}


def _join_group_request_up(old: Any) -> Fields:
    # Before KIP-62 the session timeout was also the rebalance timeout.
    return {"rebalance_timeout": old.session_timeout}


def _leave_group_request_up(old: Any) -> Fields:
    return {"members": ({"member_id": old.member_id},)}


def _leave_group_request_down(new: Any) -> Fields:
    return {"member_id": _one(new.members).member_id}


def _leave_group_response_down(new: Any) -> Fields:
    errors = (new.error_code, *(member.error_code for member in new.members))
    return {"error_code": next((error for error in errors if error), ErrorCode.none)}


# -- Topic APIs ------------------------------------------------------------------------------------


def _delete_topics_request_up(old: Any) -> Fields:
    return {"topics": tuple({"name": name} for name in old.topic_names)}


def _delete_topics_request_down(new: Any) -> Fields:
    assert all(topic.name is not None for topic in new.topics), "this version deletes by name"
    return {"topic_names": tuple(topic.name for topic in new.topics)}


def _metadata_request_up(old: Any) -> Fields:
    # Version 0 has no null, so its empty list means all topics.
    return {"topics": old.topics or None}


# -- Transaction APIs ------------------------------------------------------------------------------


def _add_partitions_request_up(old: Any) -> Fields:
    transaction = {
        "transactional_id": old.v3_and_below_transactional_id,
        "producer_id": old.v3_and_below_producer_id,
        "producer_epoch": old.v3_and_below_producer_epoch,
        "topics": old.v3_and_below_topics,
    }
    return {"transactions": (transaction,)}


def _add_partitions_request_down(new: Any) -> Fields:
    transaction = _one(new.transactions)
    return {
        "v3_and_below_transactional_id": transaction.transactional_id,
        "v3_and_below_producer_id": transaction.producer_id,
        "v3_and_below_producer_epoch": transaction.producer_epoch,
        "v3_and_below_topics": transaction.topics,
    }


def _add_partitions_response_up(old: Any) -> Fields:
    result = {"transactional_id": "", "topic_results": old.results_by_topic_v3_and_below}
    return {"results_by_transaction": (result,)}


def _add_partitions_response_down(new: Any) -> Fields:
    return {"results_by_topic_v3_and_below": _one(new.results_by_transaction).topic_results}


# -- Controller APIs -------------------------------------------------------------------------------


def _alter_partition_up(old: Any) -> Fields:
    return {"new_isr_with_epochs": tuple({"broker_id": broker} for broker in old.new_isr)}


def _alter_partition_down(new: Any) -> Fields:
    return {"new_isr": tuple(state.broker_id for state in new.new_isr_with_epochs)}


def _end_quorum_epoch_up(old: Any) -> Fields:
    candidates = tuple({"candidate_id": replica} for replica in old.preferred_successors)
    return {"preferred_candidates": candidates}


def _end_quorum_epoch_down(new: Any) -> Fields:
    return {"preferred_successors": tuple(r.candidate_id for r in new.preferred_candidates)}


_UPGRADE, _SAFE_DOWNGRADE = 1, 2


def _feature_update_up(old: Any) -> Fields:
    return {"upgrade_type": _SAFE_DOWNGRADE if old.allow_downgrade else _UPGRADE}


def _feature_update_down(new: Any) -> Fields:
    return {"allow_downgrade": new.upgrade_type != _UPGRADE}


RESHAPES: Mapping[str, Reshape] = {
    "find_coordinator.request.FindCoordinatorRequest": Reshape(
        range(4), lambda old: {"coordinator_keys": (old.key,)}, _find_coordinator_request_down
    ),
    "find_coordinator.response.FindCoordinatorResponse": Reshape(
        range(4), _find_coordinator_response_up, _find_coordinator_response_down
    ),
    "offset_fetch.request.OffsetFetchRequest": Reshape(
        range(8), _offset_fetch_request_up, _offset_fetch_request_down
    ),
    "offset_fetch.response.OffsetFetchResponse": Reshape(
        range(8), _offset_fetch_response_up, _offset_fetch_response_down
    ),
    "join_group.request.JoinGroupRequest": Reshape(range(1), _join_group_request_up, _nothing),
    "leave_group.request.LeaveGroupRequest": Reshape(
        range(3), _leave_group_request_up, _leave_group_request_down
    ),
    "leave_group.response.LeaveGroupResponse": Reshape(
        range(3), _nothing, _leave_group_response_down
    ),
    "delete_topics.request.DeleteTopicsRequest": Reshape(
        range(6), _delete_topics_request_up, _delete_topics_request_down
    ),
    "metadata.request.MetadataRequest": Reshape(range(1), _metadata_request_up, _nothing),
    "add_partitions_to_txn.request.AddPartitionsToTxnRequest": Reshape(
        range(4), _add_partitions_request_up, _add_partitions_request_down
    ),
    "add_partitions_to_txn.response.AddPartitionsToTxnResponse": Reshape(
        range(4), _add_partitions_response_up, _add_partitions_response_down
    ),
    "alter_partition.request.PartitionData": Reshape(
        range(3), _alter_partition_up, _alter_partition_down
    ),
    "end_quorum_epoch.request.PartitionData": Reshape(
        range(1), _end_quorum_epoch_up, _end_quorum_epoch_down
    ),
    "update_features.request.FeatureUpdateKey": Reshape(
        range(1), _feature_update_up, _feature_update_down
    ),
}
