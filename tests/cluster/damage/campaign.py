"""Rounds of damage: a node stops, its files are damaged, it starts, and all records are checked.

Each round has its own seed. Several rounds share a cluster, so a round may damage files that an
earlier round has damaged. After a failed round, the next round gets a new cluster.
"""

import random
import re
import shutil
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from tests.cluster.damage.kinds import GENERIC, KINDS, META_PROPERTIES
from tests.cluster.damage.replicated import WIDE, Replicated
from tests.cluster.damage.reports import NodeLog, can_be_known
from tests.cluster.damage.singles import Singles
from tests.cluster.damage.site import Harm, NothingToDamage, Site

from tidelog.model.ids import NodeId
from tidelog.testing import Cluster, NodeStuck

ROUNDS_PER_CLUSTER = 12
"""The limit exists because each round reads all records, so later rounds take longer."""
PROPERTIES = {
    "metadata.log.max.record.bytes.between.snapshots": "3000",
    "replica.lag.time.max.ms": "5000",
    "log.index.interval.bytes": "512",
    "log.flush.offset.checkpoint.interval.ms": "500",
    "log.retention.check.interval.ms": "1000",
    "log.initial.task.delay.ms": "500",
    "offsets.topic.num.partitions": "2",
}
IN_TURN = [*KINDS, *GENERIC * 2]
"""Kinds that damage an arbitrary file (GENERIC) occur three times as often as other kinds."""
ATTEMPTS = 50
SEGMENT_BYTES = 8_192
ISR_SECONDS = 60.0
REPORT_SECONDS = 60.0
"""How long a round waits until the background verification has found the damage."""
_PAUSE_SECONDS = 0.1
REPORTED, HARMLESS, REFUSED, FAILED = "reported", "nothing shows it", "refused, repaired", "FAILED"


@dataclass
class Outcome:
    seed: int
    kind: str = ""
    how: str = ""
    node: NodeId = 0
    what: str = ""
    seconds: float = 0.0
    verdict: str = REPORTED
    problems: list[str] = field(default_factory=list)

    def __str__(self) -> str:
        summary = f"seed {self.seed}: node {self.node} {self.how}, {self.kind}: {self.what[:110]}"
        lines = [f"{summary}: {self.verdict} ({self.seconds:.1f} s)", *self.problems]
        return "\n      ".join(lines)


class Campaign:
    """Runs all rounds, and calls `tell` with a line about each round."""

    def __init__(
        self, directory: Path, tell: Callable[[str], None], kinds: list[str] | None = None
    ) -> None:
        self._directory = directory
        self._tell = tell
        self._kinds = kinds
        self._clusters = 0
        self.outcomes: list[Outcome] = []
        self.ends: list[str] = []
        """Problems that were found when a cluster was stopped and its replicas were compared."""
        self.acknowledged = 0

    def run(self, seeds: Iterator[int] | range) -> None:
        left = list(seeds)
        while left:
            some, left = left[:ROUNDS_PER_CLUSTER], left[ROUNDS_PER_CLUSTER:]
            left = self._on_one_cluster(some) + left

    def _on_one_cluster(self, seeds: list[int]) -> list[int]:
        """Run a round for each seed until a round fails; return the remaining seeds."""
        self._clusters += 1
        directory = self._directory / f"cluster{self._clusters}"
        with Cluster(directory=directory, properties=PROPERTIES, network_faults=False) as cluster:
            rounds = Rounds(cluster, self._kinds)
            for number, seed in enumerate(seeds):
                outcome = rounds.run(seed)
                self.outcomes.append(outcome)
                self._tell(f"  {len(self.outcomes):4} {outcome}")
                if outcome.problems:
                    self.acknowledged += rounds.load.acknowledged
                    rounds.load.abandon()
                    return seeds[number + 1 :]
            problems = rounds.end()
            self.acknowledged += rounds.load.acknowledged
        if problems:
            self.ends += problems
            self._tell(f"  cluster {self._clusters}: " + "\n      ".join(problems))
        else:
            shutil.rmtree(directory)
        return []

    def table(self) -> list[str]:
        """The outcomes of each kind of damage, as a table."""
        counts: dict[str, Counter[str]] = {}
        for one in self.outcomes:
            counts.setdefault(one.kind, Counter())[one.verdict] += 1
        heads = (REPORTED, HARMLESS, REFUSED, FAILED)
        lines = [f"  {'':38}" + "".join(f"{head:>20}" for head in heads)]
        lines += [
            f"  {kind:38}" + "".join(f"{found[head] or '':>20}" for head in heads)
            for kind, found in sorted(counts.items())
        ]
        total = Counter(one.verdict for one in self.outcomes)
        lines.append(f"  {'':38}" + "".join(f"{total[head]:>20}" for head in heads))
        found = [problem for one in self.outcomes for problem in one.problems] + self.ends
        sorts = Counter(sort_of(problem) for problem in found)
        summary = ", ".join(f"{sort} {sorts[sort]}" for sort in SORTS)
        return [*lines, f"  acknowledged {self.acknowledged:,}; problems: {summary}"]


SORTS = {
    "lost": r"acknowledged more|ends at|could be read and are not|deleted batches|offset \d+ after",
    "wrong": r"wrong data|differ below|is damaged|batch at",
    "tracebacks": r"Traceback|bug in Tidelog|AssertionError: $",
    "not reported": r"not reported",
    "unclean elections": r"unclean election",
    "stuck": r"NodeStuck|has ended",
    "other": r"",
}


def sort_of(problem: str) -> str:
    return next(sort for sort, words in SORTS.items() if re.search(words, problem))


class Rounds:
    """The rounds on one cluster."""

    def __init__(self, cluster: Cluster, kinds: list[str] | None = None) -> None:
        self._cluster = cluster
        self._kinds = kinds or IN_TURN
        configs = {"internal_segment_bytes": SEGMENT_BYTES}
        self.load = Replicated(cluster, **configs)
        self._singles = Singles(cluster, min_insync_replicas=1, **configs)
        self._before = cluster.directory / "before"
        self._after = cluster.directory / "after"

    def run(self, seed: int) -> Outcome:
        rng = random.Random(seed)
        outcome = Outcome(seed)
        began = time.monotonic()
        try:
            self._run(rng, outcome)
        except (NodeStuck, AssertionError, OSError) as stuck:
            outcome.problems.append(f"{type(stuck).__name__}: {stuck}")
        if outcome.problems:
            outcome.verdict = FAILED
        outcome.seconds = time.monotonic() - began
        return outcome

    def _run(self, rng: random.Random, outcome: Outcome) -> None:
        outcome.node = node = self._victim(rng)
        outcome.how = rng.choice(["stopped", "killed"])
        was_clean = outcome.how == "stopped"
        logs = {one: NodeLog(process) for one, process in self._cluster.nodes.items()}
        for stream in self.load.streams.values():
            stream.await_acks(rng.randrange(1, 60))
        if was_clean:
            status = self._cluster.stop(node)
            assert status == 0, f"it ended with status {status}"
        else:
            self._cluster.kill(node)
        harm, known = self._damage(rng, outcome, node, was_clean)
        log = NodeLog(self._cluster.nodes[node])
        self._start(node, harm, outcome, log)
        self.load.await_whole(ISR_SECONDS)
        outcome.problems += self.load.problems(rng)
        self._check(node, harm, known, outcome, log, logs)

    def _victim(self, rng: random.Random) -> NodeId:
        match rng.randrange(3):
            case 0:
                return self._cluster.controller()
            case 1:
                return self._cluster.leader_of(WIDE, rng.randrange(3))
            case _:
                return rng.choice(list(self._cluster.nodes))

    def _damage(
        self, rng: random.Random, outcome: Outcome, node: NodeId, was_clean: bool
    ) -> tuple[Harm, bool]:
        """Damage the node's files; return the harm, and whether the node can detect it."""
        data = self._cluster.data(node)
        _copy(data, self._before)
        partitions = [*self.load.directories(), self._singles.directory_of(node)]
        site = Site(data, rng, partitions)
        outcome.kind, harm = self._draw(site, outcome.seed)
        outcome.what = harm.what
        _copy(data, self._after)
        return harm, can_be_known(harm, self._before, self._after, was_clean=was_clean)

    def _draw(self, site: Site, seed: int) -> tuple[str, Harm]:
        """Do the kind of damage that the seed selects, or the next kind that is possible here."""
        for turn in range(len(self._kinds)):
            kind = self._kinds[(seed + turn) % len(self._kinds)]
            for _ in range(ATTEMPTS):
                with suppress(NothingToDamage):
                    return kind, KINDS[kind](site)
        raise AssertionError(f"none of {self._kinds} applies to this node")

    def _start(self, node: NodeId, harm: Harm, outcome: Outcome, log: NodeLog) -> None:
        self._cluster.start(node, wait=False)
        process = self._cluster.nodes[node]
        try:
            process.await_ready()
        except NodeStuck as stuck:
            if "ended" not in str(stuck) or not harm.may_refuse:
                raise
            process.kill()
            outcome.verdict = REFUSED
            if not log.mentions(harm.names):
                outcome.problems.append("it refused to start and did not name the file")
            self._repair(node, harm)
            self._cluster.start(node)

    def _repair(self, node: NodeId, harm: Harm) -> None:
        """Restore the damaged files from a backup or format the directory, as an operator would."""
        data = self._cluster.data(node)
        if not (data / "__cluster_metadata-0").exists():
            self._cluster.layout.prepare()
            return
        for path in harm.paths:
            target = data / path
            if target.is_dir() and not target.is_symlink():
                shutil.rmtree(target)
            target.unlink(missing_ok=True)
            shutil.copy(self._before / path, target)

    def _check(
        self,
        node: NodeId,
        harm: Harm,
        known: bool,
        outcome: Outcome,
        log: NodeLog,
        logs: dict[NodeId, NodeLog],
    ) -> None:
        problems = outcome.problems
        if known and outcome.verdict != REFUSED:
            _wait(lambda: log.mentions(harm.names), REPORT_SECONDS)
        # A damaged replica fetches its records again. Wait until it has fetched all of them.
        found: list[str] = []

        def is_whole() -> bool:
            found[:] = self.load.problems_on(node)
            return not found

        _wait(is_whole, ISR_SECONDS)
        problems += found
        alone = self._singles.directory_of(node)
        was_touched = harm.touches(alone) or META_PROPERTIES in harm.paths
        problems += self._singles.problems(
            node, self._before, self._after, was_damaged=harm.touches(alone)
        )
        for one, said in logs.items():
            problems += [f"node {one}: {line}" for line in said.bugs()]
            # For topics with one replica, an unclean election after a kill is allowed.
            problems += [
                f"node {one} saw an unclean election of {name}"
                for name in sorted(said.unclean_elections())
                if not name.startswith("alone")
            ]
            if not self._cluster.nodes[one].is_running:
                problems.append(f"node {one} has ended")
        if outcome.verdict != REFUSED:
            is_reported = log.mentions(harm.names)
            outcome.verdict = REPORTED if is_reported else HARMLESS
            if known and not is_reported:
                problems.append("the damage is not reported")
        if was_touched and not problems:
            self._singles.renew()

    def end(self) -> list[str]:
        """Stop all nodes cleanly, and compare all replicas byte for byte."""
        self.load.stop()
        try:
            self.load.await_in_sync(ISR_SECONDS)
        except NodeStuck as stuck:
            return [str(stuck)]
        problems = self.load.problems(random.Random(0))
        for node in self._cluster.nodes:
            self._cluster.stop(node)
        return problems + self.load.problems_on_all()


def _wait(is_true: Callable[[], bool], seconds: float) -> None:
    """Wait until the condition is true, or until the time limit."""
    deadline = time.monotonic() + seconds
    while not is_true() and time.monotonic() < deadline:
        time.sleep(_PAUSE_SECONDS)


def _copy(source: Path, target: Path) -> None:
    shutil.rmtree(target, ignore_errors=True)
    shutil.copytree(source, target, symlinks=True)
