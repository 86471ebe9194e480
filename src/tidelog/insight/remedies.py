"""The remedies for a partition: one sentence for each action that an operator can take.

The sentences never suggest starting a broker that is running, or electing a replica whose log
directory has failed.
"""

from collections.abc import Iterator, Sequence

from tidelog.insight import wording
from tidelog.insight.partition_facts import Facts
from tidelog.model.ids import NodeId

SETTLED_RECORDS = 1
"""A follower with at most this lag counts as caught up. On a busy partition, a follower always lags
a little.
"""


def remedies(facts: Facts) -> Iterator[str]:
    if facts.controller is None:
        yield "Start controllers until a majority of the quorum's voters is up."
    if not facts.has_leader:
        yield from _leaders_to_be(facts)
        return
    if not facts.is_led:
        yield (
            f"If broker {facts.leader} does not recover, another replica becomes leader when its "
            f"session expires (broker.session.timeout.ms){_once_controlled(facts)}."
        )
    for broker in facts.out:
        yield _remedy(facts, broker)


# -- Without a leader ------------------------------------------------------------------------------


def _leaders_to_be(facts: Facts) -> Iterator[str]:
    awaited = facts.elr or facts.isr
    if awaited:
        yield from _ways_back(facts, awaited, "", "holds everything that was committed")
    elif facts.last_known_elr:
        awaited = facts.last_known_elr
        will = "is elected when it is back, though it may have lost its last records"
        yield from _ways_back(facts, awaited, ", the last known leader", will)
    usable = [one for one in facts.replicas if _may_lead(facts, one)]
    if any(one in usable for one in awaited):
        return
    if not facts.allows_unclean and usable:
        yield (
            f"Only if that will never be possible: `tidelog configs --alter --entity-type "
            f"topics --entity-name {facts.partition.topic} --add-config "
            f"unclean.leader.election.enable=true` lets {wording.brokers(usable, joined='or')} "
            "lead, and records that only the other replicas hold are lost."
        )
    elif facts.allows_unclean and not usable:
        yield from _any_other(facts, awaited)


def _ways_back(facts: Facts, awaited: Sequence[NodeId], title: str, will: str) -> Iterator[str]:
    """The actions that make an awaited replica able to lead.

    `will` ends a sentence that begins with "it", such as "it holds everything that was committed".
    """
    away = [one for one in awaited if one not in facts.up and not facts.has_lost_directory(one)]
    if away:
        yield (
            f"{_start(facts, away)} {wording.brokers(away, joined='or')}{title}: "
            f"{'it' if len(away) == 1 else 'each'} {will}."
        )
    for broker in awaited:
        if facts.has_lost_directory(broker):
            yield (
                f"Repair the log directory of broker {broker}{title}{',' if title else ''} where "
                f"this partition is, and start the broker again: it {will}."
            )
        elif _may_lead(facts, broker):
            yield (
                f"Broker {broker}{title}{',' if title else ''} is up, and should lead in a "
                f"moment{_once_controlled(facts)}; if it does not, check its log."
            )


def _any_other(facts: Facts, awaited: Sequence[NodeId]) -> Iterator[str]:
    """The actions if unclean elections are allowed, but no replica is available."""
    away = [one for one in facts.replicas if one not in facts.up]
    if len(away) > 1:
        yield f"{_start(facts, away)} any of {wording.brokers(away)}."
    elif away and away[0] not in awaited:
        yield f"{_start(facts, away)} broker {away[0]}."
    for broker in facts.replicas:
        if broker in facts.up and broker not in awaited:
            yield _mend(broker)


def _may_lead(facts: Facts, broker: NodeId) -> bool:
    """Whether the broker is alive and the log directory of its replica has not failed."""
    return broker in facts.up and not facts.has_lost_directory(broker)


def _once_controlled(facts: Facts) -> str:
    return ", once there is a controller" if facts.controller is None else ""


def _start(facts: Facts, brokers: Sequence[NodeId]) -> str:
    return "Start or resume" if any(map(facts.is_silent, brokers)) else "Start"


def _mend(broker: NodeId) -> str:
    return f"Repair or replace the log directory of broker {broker}, and start it again."


# -- With a leader, and replicas that are not in sync ----------------------------------------------


def _remedy(facts: Facts, broker: NodeId) -> str:
    if facts.has_lost_directory(broker):
        return _mend(broker)
    if facts.is_silent(broker):
        since = wording.moment(facts.brokers[broker].since, facts.now)
        return f"Broker {broker} has been silent since {since}: resume it, or start it again."
    if broker not in facts.up:
        return f"Start broker {broker}."
    lag = facts.lag(broker)
    if lag is None:
        return f"Broker {broker} is up, but does not report its log end offset: check its log."
    if lag <= SETTLED_RECORDS:
        return f"Broker {broker} has caught up, and should be in sync again in a moment."
    return _catching_up(facts, broker, lag)


def _catching_up(facts: Facts, broker: NodeId, lag: int) -> str:
    behind = f"{wording.count(lag, 'record')} behind"
    speed = facts.speeds.get(broker)
    if speed is None:
        return f"Broker {broker} is {behind}."
    if speed.records_per_s <= 0:
        return f"Broker {broker} is up but does not fetch: {behind}. Check its log."
    rate = (
        f"{wording.count(round(speed.records_per_s), 'record')}/s"
        if speed.bytes_per_s is None
        else f"{wording.size(speed.bytes_per_s)}/s"
    )
    leaders = facts.speeds.get(facts.leader)
    gain = speed.records_per_s - (leaders.records_per_s if leaders is not None else 0)
    if gain <= 0:
        return (
            f"Broker {broker} is {behind} and does not catch up with its leader ({rate}): it needs "
            "a faster disk or network, or slower producers."
        )
    left = wording.duration(round(lag / gain * 1000))
    return f"Broker {broker} is catching up: {behind}, {rate}, about {left}."
