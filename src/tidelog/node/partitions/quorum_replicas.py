"""Duties of a replica under the quorum rule when its partition gets or loses a leader (ADR 27)."""

from kio.schema.leader_change_message.v0.data import LeaderChangeMessage, Voter

from tidelog.controller.image.image import ClusterImage, PartitionImage
from tidelog.log.results import Appended, AppendOrigin
from tidelog.model.ids import LeaderEpoch, NodeId
from tidelog.node.clock import Clock
from tidelog.node.partitions.replica import Replica
from tidelog.node.quorum.voter_records import control_record
from tidelog.protocol.messages.broker_heartbeat import LogEndReport
from tidelog.protocol.records.records import ControlType, build_batch
from tidelog.replication.rules import QUORUM, CommitRule, majority_of


def append_first_record(replica: Replica, clock: Clock) -> None:
    """Append a record of the new leader's epoch, if earlier records are not known to be committed.

    Only a record of its own epoch lets a leader commit them (F83). Clients skip control batches.
    """
    leader = replica.leader
    assert leader is not None
    if leader.is_settled:
        return
    message = LeaderChangeMessage(
        version=0,
        leader_id=leader.me,
        voters=tuple(Voter(voter_id=replica) for replica in sorted(leader.replicas)),
        granting_voters=(),
    )
    wall = clock.now + clock.ahead_ms
    record = control_record(ControlType.LEADER_CHANGE, message, wall)
    batch = memoryview(bytearray(build_batch([record], is_control=True)))
    outcome = replica.log.append_as_leader(
        batch, leader.epoch, clock.now, AppendOrigin.COORDINATOR, clock.ahead_ms
    )
    assert isinstance(outcome, Appended), outcome
    replica.appended()


def log_end_report(replica: Replica, leader_epoch: LeaderEpoch) -> LogEndReport:
    """The end of this log, after the replica has stopped following the leader before this epoch."""
    return LogEndReport(
        topic_id=replica.topic_id,
        partition_index=replica.partition.partition,
        leader_epoch=leader_epoch,
        last_epoch=replica.log.latest_epoch,
        log_end_offset=replica.log.log_end_offset,
    )


def has_sound_peers(
    me: NodeId, placed: PartitionImage, image: ClusterImage, rule: CommitRule
) -> bool:
    """Whether other replicas can take over from this one, whose log is damaged."""
    if rule is QUORUM:
        others = [one for one in {*placed.isr, *placed.elr} if one != me and image.is_active(one)]
        return len(others) >= majority_of(placed.replicas)
    return any(one != me and image.is_active(one) for one in placed.isr)


def is_counted_on(me: NodeId, placed: PartitionImage, rule: CommitRule) -> bool:
    """Whether the controller relies on the records of this replica while the partition is led."""
    return me in placed.isr or (rule is QUORUM and me in placed.elr)
