"""Which commits and fetches of offsets a consumer group accepts: fencing by member epoch.

A commit with an older epoch than the member's is accepted for a partition that the member has had
since that epoch or an earlier one, because no other member can have owned it in between.
"""

from collections.abc import Mapping

from tidelog.coordination.groups.consumer.member import ConsumerMember
from tidelog.model.errors import ErrorCode
from tidelog.model.ids import TopicId

FIRST_VERSION_WITH_EPOCH = 9
"""The first version of OffsetCommit that members with the consumer protocol may use."""


def check_commit(
    members: Mapping[str, ConsumerMember], member_id: str, epoch: int, version: int | None
) -> ErrorCode:
    """The error for a whole commit; `check_partition` checks its partitions.

    `version` is None for a commit in a transaction: all versions of TxnOffsetCommit may be used.
    """
    if epoch < 0 and not members:
        return ErrorCode.none  # an administrator sets offsets of an empty group
    member = members.get(member_id)
    if member is None:
        return ErrorCode.unknown_member_id
    is_too_old = version is not None and version < FIRST_VERSION_WITH_EPOCH
    if is_too_old and not member.uses_classic_protocol:
        return ErrorCode.unsupported_version
    return _stale(member) if epoch > member.epoch else ErrorCode.none


def check_partition(
    members: Mapping[str, ConsumerMember],
    member_id: str,
    epoch: int,
    topic_id: TopicId,
    partition: int,
) -> ErrorCode:
    """The error for one partition of a commit that `check_commit` accepts."""
    member = members.get(member_id)
    if member is None or epoch >= member.epoch:
        return ErrorCode.none
    received_at = member.epoch_of(topic_id, partition)
    if received_at is None or epoch < received_at:
        return _stale(member)
    return ErrorCode.none


def check_fetch(
    members: Mapping[str, ConsumerMember], member_id: str | None, epoch: int
) -> ErrorCode:
    """Refuse a fetch of a member that does not have its current epoch."""
    if member_id is None and epoch < 0:
        return ErrorCode.none
    member = members.get(member_id or "")
    if member is None:
        return ErrorCode.unknown_member_id
    return ErrorCode.none if epoch == member.epoch else _stale(member)


def _stale(member: ConsumerMember) -> ErrorCode:
    if member.uses_classic_protocol:
        return ErrorCode.illegal_generation
    return ErrorCode.stale_member_epoch
