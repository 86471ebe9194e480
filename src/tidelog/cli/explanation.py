"""Why a partition is as it is, in sentences: pure, from what is known to what a person can do.

What is not known is said to be so. Nothing here asks the cluster for anything.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from tidelog.cli import wording
from tidelog.cli.replica_history import Membership, PartitionHistory, Standing
from tidelog.model.ids import NO_NODE, Millis, NodeId, Offset, TopicPartition

SETTLED_RECORDS = 1
"""A follower of a busy partition is always a little behind."""


class Speed(NamedTuple):
    """How fast a replica's log grows."""

    records_per_s: float
    bytes_per_s: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """All that is known of one partition at one moment."""

    partition: TopicPartition
    now: Millis
    leader: NodeId
    replicas: tuple[NodeId, ...]
    isr: tuple[NodeId, ...]
    elr: tuple[NodeId, ...] = ()
    last_known_elr: tuple[NodeId, ...] = ()
    adding: tuple[NodeId, ...] = ()
    min_isr: int = 1
    """As it is set; it counts no further than there are replicas."""
    allows_unclean: bool = False
    up: frozenset[NodeId] = frozenset()
    """The brokers that the cluster takes for alive."""
    ends: dict[NodeId, Offset | None] = field(default_factory=dict)
    speeds: dict[NodeId, Speed] = field(default_factory=dict)
    controller: NodeId | None = NO_NODE
    """The active controller; None if there is none."""
    history: PartitionHistory = field(default_factory=PartitionHistory)
    brokers: dict[NodeId, Standing] = field(default_factory=dict)
    events_missing: str | None = None

    @property
    def has_leader(self) -> bool:
        return self.leader != NO_NODE

    @property
    def out(self) -> tuple[NodeId, ...]:
        return tuple(one for one in self.replicas if one not in self.isr)

    @property
    def needed(self) -> int:
        return min(self.min_isr, len(self.replicas))

    @property
    def is_led(self) -> bool:
        """Whether there is a leader, and it answers."""
        return self.has_leader and self.ends.get(self.leader) is not None

    @property
    def is_healthy(self) -> bool:
        return self.is_led and not self.out and self.controller is not None

    def lag(self, replica: NodeId) -> int | None:
        mine, leaders = self.ends.get(replica), self.ends.get(self.leader)
        return None if mine is None or leaders is None else max(0, leaders - mine)


def explain(facts: Facts) -> Iterator[str]:
    """A headline, then sentences under headings, indented, each as long as it is."""
    yield _headline(facts)
    for heading, sentences in (
        ("Why", list(_why(facts))),
        ("What it means", list(_meaning(facts))),
        ("What would bring it back", list(_remedies(facts))),
    ):
        if sentences:
            yield ""
            yield heading
            yield from (f"{wording.INDENT}{sentence}" for sentence in sentences)


# -- What is ---------------------------------------------------------------------------------------


def _headline(facts: Facts) -> str:
    name, in_sync, total = facts.partition, len(facts.isr), len(facts.replicas)
    if not facts.has_leader:
        return f"{name} has no leader: nobody can write to it or read from it."
    if not facts.is_led:
        return f"{name} is led by broker {facts.leader}, which does not answer."
    if in_sync < facts.needed:
        return (
            f"{name} is below min ISR: {wording.brokers(facts.isr)} of "
            f"{wording.brokers(facts.replicas, word=False)} {_is(in_sync)} in sync, and "
            f"min.insync.replicas is {facts.min_isr}."
        )
    if facts.out:
        return (
            f"{name} is under-replicated: {wording.brokers(facts.isr)} {_is(in_sync)} in sync, "
            f"{wording.brokers(facts.out)} {_is(len(facts.out))} not."
        )
    if facts.controller is None:
        return f"{name} has all its replicas in sync, but the cluster has no active controller."
    if total == 1:
        return f"{name} is healthy, but broker {facts.leader} is its only replica."
    return (
        f"{name} is healthy: broker {facts.leader} leads, and all of "
        f"{wording.brokers(facts.replicas)} are in sync."
    )


# -- Why -------------------------------------------------------------------------------------------


def _why(facts: Facts) -> Iterator[str]:
    for broker in facts.out:
        yield _departure(facts, broker)
    yield from _election(facts)
    yield from _loss(facts)
    if facts.controller is None:
        yield (
            "No controller is active, so no leader and no in-sync set can change: "
            "a majority of the quorum's voters is not there."
        )
    if facts.events_missing is not None and not facts.is_healthy:
        yield f"More is not known: {facts.events_missing}."


def _departure(facts: Facts, broker: NodeId) -> str:
    known = facts.history.members.get(broker)
    if broker in facts.adding:
        return f"Broker {broker} is being added, and has not caught up yet."
    if known is None or known.is_in_sync:
        state = "it is down" if broker not in facts.up else "it is up"
        return f"Broker {broker} is not in the in-sync set; {state}."
    when = wording.moment(known.since, facts.now)
    return f"Broker {broker} left the in-sync set at {when}: {_reason(facts, broker, known)}."


def _reason(facts: Facts, broker: NodeId, left: Membership) -> str:
    behind = f", {wording.count(left.lag, 'record')} behind" if left.lag else ""
    match left.reason:
        case "stuck":
            silent = wording.duration(left.lag_ms) if left.lag_ms is not None else "too long"
            return f"it was stuck, without a fetch for {silent}{behind}"
        case "slow":
            lag = wording.duration(left.lag_ms) if left.lag_ms is not None else "too long"
            return f"it was slow, fetching but not caught up for {lag}{behind}"
        case "shutting-down":
            return "it was shutting down"
        case "log-dir-failed":
            return "the log directory that holds it failed"
        case "dead":
            return f"it was dead{_death(facts.brokers.get(broker), left.since)}"
        case _:
            return f"{left.reason}"


def _death(standing: Standing | None, left_at: Millis) -> str:
    if standing is None or standing.since < left_at:
        return ""
    return {
        "connection-refused": " (its port refused connections: the process was gone)",
        "session-expired": " (it sent no heartbeat in time: paused, cut off or overloaded)",
        "registered": " (another process of this broker had started)",
    }.get(standing.reason, "")


_ELECTED = {
    "dead": "when broker {before} died",
    "shutting-down": "when broker {before} shut down",
    "log-dir-failed": "when a log directory of broker {before} failed",
    "preferred": "as its preferred leader",
    "reassigned": "by a reassignment",
    "returned": "when it came back to a partition that nobody led",
    "unclean": "by an unclean election",
    "created": "since the partition was made",
}


def _election(facts: Facts) -> Iterator[str]:
    last = facts.history.election
    if last is None or last.leader != facts.leader or last.reason == "created":
        return
    how = _ELECTED.get(last.reason, last.reason).format(before=last.leader_before)
    when = wording.moment(last.at, facts.now)
    if not facts.has_leader:
        yield f"Nobody has led it since {when}, {how}: no replica that could was in sync."
    else:
        clean = "" if last.is_clean else ", which may have lost records"
        yield f"Broker {facts.leader} took the lead at {when}, {how}{clean}."


def _loss(facts: Facts) -> Iterator[str]:
    lost = facts.history.loss
    if lost is not None and lost.from_offset > lost.to_offset:
        lacking = wording.count(lost.from_offset - lost.to_offset, "committed record")
        yield (
            f"{lacking} (offsets {lost.to_offset:,} to {lost.from_offset - 1:,}) "
            f"{'was' if lost.from_offset - lost.to_offset == 1 else 'were'} lost "
            f"at {wording.moment(lost.at, facts.now)}, after an unclean election."
        )


# -- What it means ---------------------------------------------------------------------------------


def _meaning(facts: Facts) -> Iterator[str]:
    in_sync, needed = len(facts.isr), facts.needed
    factor = f"Replication factor {len(facts.replicas)}, min.insync.replicas {facts.min_isr}"
    if not facts.has_leader:
        yield f"{factor}: producers and consumers wait, and get LEADER_NOT_AVAILABLE."
    elif not facts.is_led:
        yield f"{factor}: producers and consumers wait until it answers, or another leads."
    elif in_sync < needed:
        yield (
            f"{factor}: writes with acks=all are refused (NOT_ENOUGH_REPLICAS) and nothing new "
            f"is committed until {wording.count(needed - in_sync, 'more replica')} "
            f"{_is(needed - in_sync)} in sync. What was committed can be read."
        )
    elif facts.min_isr > len(facts.replicas):
        yield f"{factor}: more than there are replicas, so all of them must be in sync."
    else:
        yield f"{factor}: writes with acks=all go on, {_margin(in_sync - needed)}."
    if not facts.has_leader or in_sync <= 1 < len(facts.replicas):
        yield (
            "Unclean elections are on: a replica that lacks committed records may lead."
            if facts.allows_unclean
            else "Unclean elections are off: rather no leader than lost records."
        )


def _margin(spare: int) -> str:
    if spare == 0:
        return "and the loss of one more replica would stop them"
    return f"and would after the loss of {wording.count(spare, 'more replica')}"


# -- What would bring it back ----------------------------------------------------------------------


def _remedies(facts: Facts) -> Iterator[str]:
    if facts.controller is None:
        yield "Start controllers until a majority of the quorum's voters is up."
    if not facts.has_leader:
        yield from _leaders_to_be(facts)
        return
    if not facts.is_led:
        yield (
            f"If broker {facts.leader} does not come back by itself, another takes the lead when "
            "its session ends (broker.session.timeout.ms)"
            f"{', once there is a controller' if facts.controller is None else ''}."
        )
    for broker in facts.out:
        yield _remedy(facts, broker)


def _leaders_to_be(facts: Facts) -> Iterator[str]:
    eligible = facts.elr or facts.isr
    if eligible:
        yield (
            f"Start {wording.brokers(eligible, joined='or')}: "
            f"{'it holds' if len(eligible) == 1 else 'each holds'} everything that was committed."
        )
    elif facts.last_known_elr:
        yield (
            f"Start {wording.brokers(facts.last_known_elr, joined='or')}, the last known leader: "
            "it is elected when it is back, though it may have lost its last records."
        )
    if not facts.allows_unclean:
        alive = [one for one in facts.replicas if one in facts.up]
        if alive:
            yield (
                f"Only if that will never be possible: `tidelog configs --alter --entity-type "
                f"topics --entity-name {facts.partition.topic} --add-config "
                f"unclean.leader.election.enable=true` lets {wording.brokers(alive, joined='or')} "
                "lead, and what only the others have is lost."
            )
    elif not any(one in facts.up for one in facts.replicas):
        yield f"Start any of {wording.brokers(facts.replicas)}."


def _remedy(facts: Facts, broker: NodeId) -> str:
    if broker not in facts.up:
        standing = facts.brokers.get(broker)
        if standing is not None and standing.is_fenced and standing.reason == "session-expired":
            return (
                f"Broker {broker} has been silent since {wording.moment(standing.since, facts.now)}"
                ": resume it, or start it again."
            )
        return f"Start broker {broker}."
    known = facts.history.members.get(broker)
    if known is not None and known.reason == "log-dir-failed":
        return f"Mend or replace the log directory of broker {broker}, and start it again."
    lag = facts.lag(broker)
    if lag is None:
        return f"Broker {broker} is up, but does not say how far it is: look into its log."
    if lag <= SETTLED_RECORDS:
        return f"Broker {broker} has caught up, and should be in sync again in a moment."
    return _catching_up(facts, broker, lag)


def _catching_up(facts: Facts, broker: NodeId, lag: int) -> str:
    behind = f"{wording.count(lag, 'record')} behind"
    speed = facts.speeds.get(broker)
    if speed is None:
        return f"Broker {broker} is {behind}."
    if speed.records_per_s <= 0:
        return f"Broker {broker} is up but does not fetch: {behind}. Look into its log."
    rate = (
        f"{wording.count(round(speed.records_per_s), 'record')}/s"
        if speed.bytes_per_s is None
        else f"{wording.size(speed.bytes_per_s)}/s"
    )
    leaders = facts.speeds.get(facts.leader)
    gain = speed.records_per_s - (leaders.records_per_s if leaders is not None else 0)
    if gain <= 0:
        return (
            f"Broker {broker} is {behind} and does not gain on its leader ({rate}): it needs a "
            "faster disk or network, or the producers must be slower."
        )
    left = wording.duration(round(lag / gain * 1000))
    return f"Broker {broker} is catching up: {behind}, {rate}, about {left}."


def _is(number: int) -> str:
    return "is" if number == 1 else "are"


def summary(topic: str, explained: Sequence[Facts]) -> str:
    """One line on a topic of several partitions."""
    healthy, total = sum(one.is_healthy for one in explained), len(explained)
    if total == 1:
        return f"{topic}: its only partition is {'' if healthy else 'not '}healthy."
    if healthy == total:
        return f"{topic}: all {total:,} partitions are healthy."
    return f"{topic}: {healthy:,} of {total:,} partitions {_is(healthy)} healthy."
