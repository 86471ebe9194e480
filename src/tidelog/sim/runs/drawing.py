"""Derives a complete run from a seed: nodes, settings, topics, workload and faults."""

from dataclasses import replace

from tidelog.model.ids import Millis, NodeId
from tidelog.sim.faults.faults import CLOCK_STEP, CONTROLLER, KINDS, LEADER, Fault
from tidelog.sim.faults.recipes import RECIPES
from tidelog.sim.machines.dice import SeededDice
from tidelog.sim.runs.plan import MAX_NODES, MIN_NODES, WORKLOADS, Plan, TopicPlan, Workload

SETTLE_MS: Millis = 1_000
"""The time before the first fault."""
LONGEST_MS: Millis = 9_000
HOUR_MS: Millis = 3_600_000
STORM_MS: Millis = 1_200
"""The maximum time between two faults of a storm."""

_FEW = 100
"""A batch of up to this many records fits into the smallest segment."""
_OFTEN = ("kill", "power-loss", "quick-restart", "pause", "isolate", "one-way", "sever")
"""Kinds that are drawn more often, because they reveal the most bugs."""

_CONSUMER_GROUP = "consumer-group"


def filled_in(plan: Plan) -> Plan:
    """The complete plan. A value drawn from the seed replaces each field that is None."""
    dice = SeededDice(plan.seed).fork("plan")
    nodes = plan.nodes or MIN_NODES + dice.fork("nodes").below(MAX_NODES - MIN_NODES + 1)
    workload = plan.workload or _drawn_workload(dice.fork("workload"))
    return replace(
        plan,
        nodes=nodes,
        faults=tuple(KINDS) if plan.faults is None else plan.faults,
        workload=workload,
        topics=_under_rules(
            _drawn_topics(dice.fork("topics"), nodes, plan.beyond, workload.records),
            plan.commit_rule,
            dice.fork("rules"),
        )
        if plan.topics is None
        else plan.topics,
        settings=_drawn_settings(dice.fork("settings")) if plan.settings is None else plan.settings,
        delay_ms=(3, 3, 10, 40)[dice.fork("delay").below(4)]
        if plan.delay_ms is None
        else plan.delay_ms,
        schedule=_with_clock_steps(
            _drawn_schedule(dice.fork("faults"), plan, nodes), dice.fork("clocks"), plan, nodes
        )
        if plan.schedule is None
        else plan.schedule,
    )


def _drawn_workload(dice: SeededDice) -> Workload:
    """A workload. Half of the runs with only a group have one with the consumer protocol."""
    names = [name for name in WORKLOADS if name != _CONSUMER_GROUP]
    name = names[dice.below(len(names))]
    if name == "group" and dice.fork("protocol").below(2):
        name = _CONSUMER_GROUP
    return WORKLOADS[name]


def _drawn_topics(
    dice: SeededDice, nodes: int, beyond: bool, records: int
) -> tuple[TopicPlan, ...]:
    """One or two topics. In one run in four, every write is flushed, so blackouts are allowed."""
    least = 4_096 if records <= _FEW else 131_072
    flushes = dice.below(4) == 0
    topics: list[TopicPlan] = []
    for name in ("orders", "payments")[: 1 + dice.below(2)]:
        configs: list[tuple[str, str]] = []
        if flushes:
            configs.append(("flush.messages", "1"))
        if dice.below(2):
            configs.append(("internal.segment.bytes", str(least << dice.below(4))))
        if beyond and dice.below(2):
            configs.append(("unclean.leader.election.enable", "true"))
        replicas = 3 if dice.below(4) else min(nodes, 4)
        minimum = 2 if dice.below(5) else 1 + dice.below(replicas)
        topics.append(TopicPlan(name, 1 + dice.below(2), replicas, minimum, tuple(configs)))
    return tuple(topics)


def _under_rules(
    topics: tuple[TopicPlan, ...], rule: str, dice: SeededDice
) -> tuple[TopicPlan, ...]:
    """The topics under the rule of the plan. In a mixed run, at least one is under `quorum`."""
    assert rule in ("isr", "quorum", "mixed"), rule
    if rule == "isr":
        return topics
    chosen = dice.below(len(topics))
    return tuple(
        replace(topic, configs=(*topic.configs, ("tidelog.commit.rule", "quorum")))
        if rule == "quorum" or place == chosen
        else topic
        for place, topic in enumerate(topics)
    )


def _drawn_settings(dice: SeededDice) -> tuple[tuple[str, str], ...]:
    heartbeat = (100, 250, 500)[dice.below(3)]
    return (
        ("broker.heartbeat.interval.ms", str(heartbeat)),
        ("broker.session.timeout.ms", str(heartbeat * (4 + dice.below(6)))),
        ("replica.lag.time.max.ms", str((600, 1_500, 10_000)[dice.below(3)])),
        ("replica.fetch.wait.max.ms", "500"),
        ("leader.imbalance.check.interval.seconds", str((5, 30, 300)[dice.below(3)])),
        (
            "metadata.log.max.record.bytes.between.snapshots",
            str((2_000, 8_000, 20_971_520)[dice.below(3)]),
        ),
        ("min.insync.replicas", "2"),
        ("default.replication.factor", "3"),
        ("offsets.topic.replication.factor", "3"),
        ("offsets.topic.num.partitions", "1"),
        ("unclean.leader.election.enable", "false"),
        # Accept any timestamp, because clock steps set the clocks of brokers back by days.
        ("log.message.timestamp.after.max.ms", str(2**63 - 1)),
    )


def _drawn_schedule(dice: SeededDice, plan: Plan, nodes: int) -> tuple[Fault, ...]:
    kinds = list(KINDS) if plan.faults is None else list(plan.faults)
    kinds = [kind for kind in kinds if kind != CLOCK_STEP]
    if not kinds:
        return ()
    kinds += [kind for kind in _OFTEN if kind in kinds]
    if dice.below(3):
        # Let this run draw from a few kinds of faults only, so that these kinds often occur
        # together (swarm testing).
        kinds = [kinds[dice.below(len(kinds))] for _ in range(2 + dice.below(4))]
    end = plan.seconds * 1_000
    pause = (2_000, 4_000, 8_000)[dice.below(3)]
    faults: list[Fault] = []
    at = SETTLE_MS
    while True:
        at += 1 + dice.below(pause)
        if at >= end:
            return tuple(sorted(faults, key=lambda fault: fault.at_ms))
        if plan.faults is None and not plan.beyond and dice.below(8) == 0:
            faults += RECIPES[dice.below(len(RECIPES))](dice, at, nodes)
            continue
        # Faults occur one at a time or, in a storm, several in quick succession. Faults often hit
        # the current leader.
        is_storm = dice.below(3) == 0
        for _ in range(2 + dice.below(3) if is_storm else 1):
            target = _drawn_target(dice, nodes, leaders=2 if is_storm else 1)
            faults.append(_drawn_fault(dice, kinds[dice.below(len(kinds))], at, target, nodes))
            at += dice.below(STORM_MS) if is_storm else 0


def _with_clock_steps(
    faults: tuple[Fault, ...], dice: SeededDice, plan: Plan, nodes: int
) -> tuple[Fault, ...]:
    """Add clock steps to one run in three. A step changes one clock or all clocks."""
    if plan.faults is not None and CLOCK_STEP not in plan.faults:
        return faults
    if plan.faults is None and dice.below(3):
        return faults
    steps = []
    at = SETTLE_MS
    while (at := at + 1 + dice.below(10_000)) < plan.seconds * 1_000:
        meant = (_drawn_target(dice, nodes, leaders=1),) if dice.below(4) else ()
        by_ms = (1 + dice.below((5_000, HOUR_MS, 48 * HOUR_MS)[dice.below(3)])) * (
            1 if dice.below(2) else -1
        )
        steps.append(Fault(at, CLOCK_STEP, meant, dice.below(LONGEST_MS), by_ms))
    return tuple(sorted((*faults, *steps), key=lambda fault: fault.at_ms))


def _drawn_target(dice: SeededDice, nodes: int, leaders: int) -> NodeId:
    """The leader with a chance of `leaders`/4, the controller with 1/4, or else a random node."""
    drawn = dice.below(4)
    if drawn < leaders:
        return LEADER
    if drawn == 3:
        return CONTROLLER
    return 1 + dice.below(nodes)


def _drawn_fault(dice: SeededDice, kind: str, at: Millis, one: NodeId, nodes: int) -> Fault:
    other = _drawn_target(dice, nodes, leaders=0)
    if other == one:
        other = one % nodes + 1 if one > 0 else LEADER
    lasts = 50 + dice.below((500, 3_000, LONGEST_MS)[dice.below(3)])
    meant: tuple[NodeId, ...] = (one,)
    amount = 0
    match kind:
        case "partition" | "one-way":
            meant = (one, other) if dice.below(2) else (other, one)
        case "sever":
            meant = (one, other)
        case "reset":
            meant, lasts = ((one, other) if dice.below(2) else (one,)), 0
        case "blackout":
            meant, amount = (), dice.below(3_000)
        case "slow-link":
            amount = 20 << dice.below(5)
        case "lossy-link":
            amount = 20 << dice.below(4)
        case "slow-disk":
            amount = 50 << dice.below(5)
        case "drift":
            amount, lasts = dice.below(101) - 50, lasts * 3
        case "damage":
            amount = dice.below(2)
        case "quick-restart":
            lasts = 100 + dice.below(300)
        case _:
            pass
    return Fault(at, kind, meant, lasts, amount)
