"""Explains the state of a partition in sentences, from the facts to the remedies.

The explanation also says which facts are unknown. This module sends no requests.
"""

from collections.abc import Iterator, Sequence

from tidelog.insight import wording
from tidelog.insight.partition_facts import Facts
from tidelog.insight.remedies import remedies
from tidelog.insight.replica_history import BrokerStanding, IsrMembership
from tidelog.model.ids import Millis, NodeId


def explain(facts: Facts) -> Iterator[str]:
    """Yield a headline, then indented sentences under headings; lines are not wrapped."""
    yield _headline(facts)
    for heading, sentences in (
        ("Why", list(_why(facts))),
        ("What it means", list(_meaning(facts))),
        ("What would bring it back", list(remedies(facts))),
    ):
        if sentences:
            yield ""
            yield heading
            yield from (f"{wording.INDENT}{sentence}" for sentence in sentences)


# -- The headline: the state in one sentence -------------------------------------------------------


def _headline(facts: Facts) -> str:
    name, in_sync, total = facts.partition, len(facts.isr), len(facts.replicas)
    if not facts.has_leader:
        return f"{name} has no leader, so it can be neither written nor read."
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


# -- Why replicas are out of sync, or there is no leader -------------------------------------------


def _why(facts: Facts) -> Iterator[str]:
    for broker in facts.replicas:
        if broker in facts.out:
            yield _departure(facts, broker)
        elif facts.has_lost_directory(broker):
            yield f"The log directory of broker {broker} that holds it has failed."
    if any(facts.has_lost_directory(broker) for broker in facts.replicas):
        yield (
            "A broker also takes a partition offline if its directory is damaged; the broker's log "
            "then reports it, and `tidelog stray` lists and restores the directory."
        )
    yield from _election(facts)
    yield from _losses(facts)
    if facts.controller is None:
        yield (
            "No controller is active, so no leader and no in-sync set can change: "
            "a majority of the quorum's voters is unavailable."
        )
    yield from _unknown(facts)


def _unknown(facts: Facts) -> Iterator[str]:
    if facts.is_healthy:
        return
    if facts.events_missing is not None:
        yield f"Further details are missing: {facts.events_missing}."
    elif facts.events_since is not None and not facts.is_explained:
        since = wording.moment(facts.events_since, facts.now)
        yield f"Further details are missing: only events since {since} were read."


def _departure(facts: Facts, broker: NodeId) -> str:
    known = facts.history.members.get(broker)
    if broker in facts.adding:
        return f"Broker {broker} is being added, and has not caught up yet."
    if known is None or known.is_in_sync:
        return f"Broker {broker} is not in the in-sync set; {_state(facts, broker)}."
    when = wording.moment(known.since, facts.now)
    return f"Broker {broker} left the in-sync set at {when}: {_reason(facts, broker, known)}."


def _state(facts: Facts, broker: NodeId) -> str:
    if broker not in facts.up:
        return "it is down"
    if facts.has_lost_directory(broker):
        return "it is up, but the log directory that holds it has failed"
    return "it is up"


def _reason(facts: Facts, broker: NodeId, left: IsrMembership) -> str:
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


def _death(standing: BrokerStanding | None, left_at: Millis) -> str:
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
    "returned": "when it returned to a leaderless partition",
    "unclean": "by an unclean election",
    "created": "when the partition was created",
}


def _election(facts: Facts) -> Iterator[str]:
    last = facts.history.election
    if last is None or last.leader != facts.leader or last.reason == "created":
        return
    how = _ELECTED.get(last.reason, last.reason).format(before=last.leader_before)
    when = wording.moment(last.at, facts.now)
    if not facts.has_leader:
        yield f"It has had no leader since {when}, {how}: no replica that could lead was in sync."
    else:
        clean = "" if last.is_clean else ", which may have lost records"
        yield f"Broker {facts.leader} became leader at {when}, {how}{clean}."


def _losses(facts: Facts) -> Iterator[str]:
    for lost in facts.history.losses:
        number = lost.from_offset - lost.to_offset
        yield (
            f"{wording.count(number, 'committed record')} (offsets {lost.to_offset:,} to "
            f"{lost.from_offset - 1:,}) {'was' if number == 1 else 'were'} lost at "
            f"{wording.moment(lost.at, facts.now)}, after an unclean election."
        )


# -- What it means for producers and consumers -----------------------------------------------------


def _meaning(facts: Facts) -> Iterator[str]:
    in_sync, needed = len(facts.isr), facts.needed
    factor = f"Replication factor {len(facts.replicas)}, min.insync.replicas {facts.min_isr}"
    if not facts.has_leader:
        yield f"{factor}: producers and consumers wait, and get LEADER_NOT_AVAILABLE."
    elif not facts.is_led:
        yield f"{factor}: producers and consumers wait until it answers or another replica leads."
    elif in_sync < needed:
        yield (
            f"{factor}: writes with acks=all are refused (NOT_ENOUGH_REPLICAS) and nothing new "
            f"is committed until {wording.count(needed - in_sync, 'more replica')} "
            f"{_is(needed - in_sync)} in sync. Committed records can be read."
        )
    elif facts.min_isr > len(facts.replicas):
        yield f"{factor}: more than there are replicas, so all of them must be in sync."
    else:
        yield f"{factor}: writes with acks=all go on, {_margin(in_sync - needed)}."
    if not facts.has_leader or in_sync <= 1 < len(facts.replicas):
        yield (
            "Unclean elections are on: a replica that lacks committed records may lead."
            if facts.allows_unclean
            else "Unclean elections are off: the partition waits rather than lose records."
        )


def _margin(spare: int) -> str:
    if spare == 0:
        return "and the loss of one more replica would stop them"
    return f"and still would after the loss of {wording.count(spare, 'more replica')}"


def _is(number: int) -> str:
    return "is" if number == 1 else "are"


def summary(topic: str, explained: Sequence[Facts]) -> str:
    """Summarise the partitions of a topic in one line."""
    healthy, total = sum(one.is_healthy for one in explained), len(explained)
    if total == 1:
        return f"{topic}: its only partition is {'' if healthy else 'not '}healthy."
    if healthy == total:
        return f"{topic}: all {total:,} partitions are healthy."
    return f"{topic}: {healthy:,} of {total:,} partitions {_is(healthy)} healthy."
