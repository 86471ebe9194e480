"""Takes a member through one heartbeat or join: subscription, group epoch, target, reconciliation.

Each step adds records that depend only on the group as it is and on the steps before.
"""

from tidelog.coordination.groups.consumer.expressions import update_regex
from tidelog.coordination.groups.consumer.group import ConsumerGroup
from tidelog.coordination.groups.consumer.member import ConsumerMember, MemberState
from tidelog.coordination.groups.consumer.outcome import (
    REBALANCE,
    GroupChange,
    GroupView,
    MemberTimer,
    MetadataChecked,
    StartTimer,
    StopTimer,
)
from tidelog.coordination.groups.consumer.reconciling import Owned, TargetState, reconcile
from tidelog.coordination.groups.consumer.records import (
    ConsumerGroupCurrentMemberAssignmentKey,
    ConsumerGroupMemberMetadataKey,
    ConsumerGroupMetadataKey,
    ConsumerGroupMetadataValue,
    ConsumerGroupPartitionMetadataKey,
    ConsumerGroupRecord,
)
from tidelog.coordination.groups.consumer.subscribing import subscription_after, topic_ids
from tidelog.coordination.groups.consumer.targets import update_target


class MemberUpdate:
    def __init__(
        self,
        group: ConsumerGroup,
        member: ConsumerMember,
        updated: ConsumerMember,
        view: GroupView,
        records: list[ConsumerGroupRecord],
    ) -> None:
        self._group = group
        self._member = member
        self.updated = updated
        self._view = view
        self.records = records
        self.changes: list[GroupChange] = []
        self.epoch = group.epoch
        self._subscription_changed = False
        self._is_homogeneous = True

    def subscribe(self) -> None:
        """Store the subscription; if it has changed, or the topics have, bump the group epoch."""
        group, updated = self._group, self.updated
        if updated != self._member:
            key = ConsumerGroupMemberMetadataKey(group.group_id, updated.member_id)
            self.records.append((key, updated.subscription_record()))
        names_changed = updated.topic_names != self._member.topic_names
        regex = update_regex(group, self._member, updated, self._view)
        self.records += regex.records
        if regex.request is not None:
            self.changes.append(regex.request)
        self._subscription_changed = names_changed or regex.has_changed
        # A new expression has no topics yet. The epoch is bumped when they are known.
        has_topics = regex.is_resolved or (regex.has_changed and updated.uses_classic_protocol)
        self._bump_epoch(must_bump=names_changed or has_topics)

    def _bump_epoch(self, *, must_bump: bool) -> None:
        group, view = self._group, self._view
        checked = view.checked_epoch
        after = subscription_after(group, (self._member,), (self.updated,))
        self._is_homogeneous = after.is_homogeneous(self._member_count())
        if not must_bump and checked is not None and group.epoch >= checked:
            return
        metadata_hash = view.hashes.of_group(after.topics(), view.topics)
        if must_bump or metadata_hash != group.metadata_hash:
            self.epoch += 1
            value = ConsumerGroupMetadataValue(epoch=self.epoch, metadata_hash=metadata_hash)
            self.records.append((ConsumerGroupMetadataKey(group.group_id), value))
        self.changes.append(MetadataChecked(group.group_id, self.epoch))
        if group.has_partition_metadata:
            self.records.append((ConsumerGroupPartitionMetadataKey(group.group_id), None))

    def _member_count(self) -> int:
        group, updated = self._group, self.updated
        is_known = updated.member_id in group.members or (
            updated.instance_id is not None and updated.instance_id in group.static_members
        )
        return len(group.members) + (0 if is_known else 1)

    def retarget(self) -> TargetState:
        """Compute a new target assignment if the group has a newer epoch than the target."""
        records, target = update_target(
            self._group,
            self.epoch,
            self._member,
            self.updated,
            self._view,
            is_homogeneous=self._is_homogeneous,
        )
        self.records += records
        return target

    def reconcile(self, target: TargetState, owned: Owned) -> None:
        """Move the member one step towards its target."""
        group, member = self._group, self.updated
        if not self._subscription_changed and member.is_reconciled_to(target.epoch):
            return
        subscribed = topic_ids(group.topics_of(member), self._view.topics)
        self.updated = reconcile(
            group,
            member,
            target,
            frozenset(subscribed),
            owned=owned,
            subscription_changed=self._subscription_changed,
        )
        if self.updated == member:
            return
        key = ConsumerGroupCurrentMemberAssignmentKey(group.group_id, member.member_id)
        self.records.append((key, self.updated.assignment_record()))
        if not member.uses_classic_protocol:
            self.changes.append(self._rebalance_timer())

    def _rebalance_timer(self) -> GroupChange:
        timer = MemberTimer(REBALANCE, self._group.group_id, self.updated.member_id)
        if self.updated.state is MemberState.UNREVOKED_PARTITIONS:
            return StartTimer(timer, self._view.now + self.updated.rebalance_timeout_ms)
        return StopTimer(timer)
