"""The invariants, one file for each. An invariant is checked after every event that concerns it.

An invariant receives the changes that an event has made to a node, and checks only these changes.
`ALL` lists the safety invariants, which must always hold. `liveness` must hold some time after the
last fault.
"""

from tidelog.sim.invariants.acknowledged_kept import AcknowledgedKept
from tidelog.sim.invariants.counted_is_held import CountedIsHeld
from tidelog.sim.invariants.fit_to_join import FitToJoin
from tidelog.sim.invariants.idempotent_once import IdempotentOnce
from tidelog.sim.invariants.invariant import Invariant
from tidelog.sim.invariants.leader_completeness import LeaderCompleteness
from tidelog.sim.invariants.left_for_lag import LeftForLag
from tidelog.sim.invariants.log_matching import LogMatching
from tidelog.sim.invariants.metadata_matches import MetadataMatches
from tidelog.sim.invariants.one_leader_per_epoch import OneLeaderPerEpoch
from tidelog.sim.invariants.pre_vote_before_epoch import PreVoteBeforeEpoch
from tidelog.sim.invariants.quorum_superset import QuorumSuperset
from tidelog.sim.invariants.reads_stay import ReadsStay
from tidelog.sim.invariants.watermark_monotonic import WatermarkMonotonic

__all__ = ["ALL", "Invariant"]

ALL: tuple[type[Invariant], ...] = (
    LogMatching,
    OneLeaderPerEpoch,
    LeaderCompleteness,
    WatermarkMonotonic,
    QuorumSuperset,
    CountedIsHeld,
    FitToJoin,
    LeftForLag,
    PreVoteBeforeEpoch,
    MetadataMatches,
    IdempotentOnce,
    AcknowledgedKept,
    ReadsStay,
)
