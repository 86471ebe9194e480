"""One run of a plan, from the start of its nodes to the final check.

The nodes start, topics are created, clients begin, and faults occur for the planned time. Then all
faults end and the cluster must recover. The run ends at the first violation.
"""

from collections.abc import Iterator
from itertools import chain, islice
from traceback import extract_tb
from typing import Any

from tidelog.model.errors import ErrorCode
from tidelog.model.ids import Millis, TopicPartition
from tidelog.sim.checks.checker import Checker
from tidelog.sim.checks.reports import Reports, kept
from tidelog.sim.checks.scene import Scene, Violation
from tidelog.sim.clients.history import ClientWrite, History, Lost
from tidelog.sim.clients.messages import create_topic
from tidelog.sim.clients.talk import Talk
from tidelog.sim.clients.workload.client import ClientSurroundings
from tidelog.sim.clients.workload.workload import Clients
from tidelog.sim.faults.budget import Budget
from tidelog.sim.faults.strikes import Strikes
from tidelog.sim.faults.wounds import Wounds
from tidelog.sim.invariants import liveness
from tidelog.sim.machines.cluster import SimCluster
from tidelog.sim.machines.host import SimHost
from tidelog.sim.rules import applied_rules
from tidelog.sim.runs.drawing import filled_in
from tidelog.sim.runs.outcome import Counts, Failure, Outcome
from tidelog.sim.runs.plan import Plan, TopicPlan
from tidelog.sim.runs.recorder import Recorder
from tidelog.sim.runs.recording import Recording

START_LIMIT_MS: Millis = 60_000
SKEW_MS: Millis = 2_000
"""The maximum difference of two clocks at the start."""
CALM_STEP_MS: Millis = 250


def simulate(plan: Plan, recorder: Recorder | None = None) -> Outcome:
    """Run the plan. Violated invariants and bugs of the node are reported in the outcome."""
    with applied_rules(plan.rules), kept() as reports:
        return _Run(filled_in(plan), recorder, reports).outcome()


class _Run:
    def __init__(self, plan: Plan, recorder: Recorder | None, reports: Reports) -> None:
        assert plan.nodes is not None
        self._reports = reports
        self._plan = plan
        self._recorder = recorder
        self._counts = Counts()
        self._history = History()
        self._scene = Scene(self._history, plan.beyond or not plan.is_limited)
        needed = () if plan.workload is None else plan.workload.settings
        settings = dict((*needed, *(plan.settings or ())))
        self._cluster = SimCluster(plan.seed, plan.nodes, settings)
        self._cluster.network.delay_ms = plan.delay_ms or 3
        self._world = self._cluster.world
        self._first_at = self._begun_at = self._world.now
        observer = None
        if recorder is not None:
            observer = Recording(recorder, self._scene, self._since)
        self._checker = Checker(self._scene, self._counts.checks, observer)
        dice = self._world.dice.fork("clocks")
        for host in self._cluster.hosts.values():
            host.clock.skew(dice.below(SKEW_MS))
            host.told = self._told

    def outcome(self) -> Outcome:
        failure: Failure | None = None
        try:
            self._start()
            self._strike_and_calm()
            self._look_back()
        except Violation as found:
            failure = Failure(found.invariant, found.sentence, self._since(), found.partition)
        except AssertionError as bug:
            failure = Failure("assertions hold", _told_of(bug), self._since())
        self._counts.events = self._world.events
        self._counts.simulated_ms = self._world.now - self._first_at
        return Outcome(
            self._plan,
            self._world.trace_hash,
            failure,
            self._counts,
            self._history,
            self._recorder,
        )

    # -- the three phases --------------------------------------------------------------------------

    def _start(self) -> None:
        """Start the nodes and create the topics, without faults."""
        world, cluster = self._world, self._cluster
        cluster.start()
        assert world.run_until(lambda: cluster.is_ready, START_LIMIT_MS), "not ready in time"
        topics = self._plan.topics or ()
        for topic in topics:
            self._make(topic)
        names = {topic.name for topic in topics}

        def is_known() -> bool:
            nodes = [host.node for host in cluster.up if host.node is not None]
            return all(names <= set(node.image.topics) for node in nodes)

        assert world.run_until(is_known, START_LIMIT_MS), "topics are not known in time"
        world.run(500)
        self._begun_at = world.now

    def _make(self, topic: TopicPlan) -> None:
        replicas = min(topic.replicas, len(self._cluster.hosts))
        configs: dict[str, Any] = {
            "min.insync.replicas": str(topic.min_insync_replicas),
            **dict(topic.configs),
        }
        answer = Talk(self._cluster, 1).ask(
            create_topic(topic.name, topic.partitions, replicas, **configs)
        )
        assert answer is not None, f"{topic.name} is not made"
        assert answer.topics[0].error_code is ErrorCode.none, answer.topics[0].error_message

    def _strike_and_calm(self) -> None:
        plan = self._plan
        assert plan.workload is not None
        around = ClientSurroundings(self._cluster, self._checker, self._history)
        clients = Clients(around, plan.workload, plan.topics or ())
        budget = Budget(self._cluster, is_open=self._scene.is_beyond)
        wounds = Wounds(self._cluster, budget, self._reports, self._scene)
        strikes = Strikes(
            self._cluster,
            budget,
            self._counts,
            self._begun_at,
            clients.partitions[0],
            self._recorder,
            wounds,
        )
        strikes.schedule(plan.schedule or ())
        clients.gather_at([fault.at_ms for fault in plan.schedule or ()])
        self._world.run(plan.seconds * 1_000)
        strikes.calm()
        clients.finish()
        self._get_well(clients)
        if unreported := wounds.unreported():
            raise Violation("every damage is reported", "; ".join(unreported), None)

    def _get_well(self, clients: Clients) -> None:
        end = self._world.now + liveness.LIMIT_MS
        while True:
            self._world.run(CALM_STEP_MS)
            self._counts.checks[liveness.NAME] += 1
            missing = list(islice(self._missing(clients), 3))
            if not missing:
                return
            if self._world.now >= end:
                what = "; ".join(sentence for sentence, _ in missing)
                partition = next((one for _, one in missing if one is not None), None)
                after = liveness.LIMIT_MS // 1_000
                raise Violation(liveness.NAME, f"{after} s after the last fault {what}", partition)

    def _missing(self, clients: Clients) -> Iterator[tuple[str, TopicPartition | None]]:
        return chain(liveness.missing(self._cluster, self._scene), clients.missing())

    def _look_back(self) -> None:
        """Check that every acknowledged write still exists."""
        for write in self._history.acknowledged:
            ledger = self._scene.by_name[write.partition]
            if self._holds(write):
                continue
            if write.acks == -1 and not ledger.lost:
                sentence = f"offset {write.base_offset} was acknowledged and is gone"
                raise Violation("acknowledged writes are kept", sentence, write.partition)
            self._history.lost.append(
                Lost(
                    write.partition,
                    write.base_offset,
                    write.records,
                    write.acks,
                    was_reported=ledger.lost > 0,
                )
            )

    def _holds(self, write: ClientWrite) -> bool:
        ledger = self._scene.by_name[write.partition]
        placed = self._scene.placed(ledger)
        leader = None if placed is None else self._scene.copy(placed.leader, ledger)
        found = None if leader is None else leader.log.at(write.base_offset)
        return found is not None and (found.base, found.crc) == (write.base_offset, write.crc)

    # -- used in every phase -----------------------------------------------------------------------

    def _told(self, host: SimHost) -> None:
        self._checker.look(host)

    def _since(self) -> Millis:
        return self._world.now - self._begun_at


def _told_of(bug: AssertionError) -> str:
    place = extract_tb(bug.__traceback__)[-1]
    where = f"{place.filename.rpartition('tidelog/')[2]}:{place.lineno}"
    return f"{where}: {bug or place.line}"
