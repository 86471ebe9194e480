"""The conditions of stories. If a condition does not hold, the verdict describes the real state."""

from collections.abc import Callable
from typing import NamedTuple

from tidelog.model.ids import NO_NODE, NO_OFFSET, NodeId, TopicPartition
from tidelog.node.inspection import follower_progress
from tidelog.node.partitions.replica import Replica
from tidelog.sim.stage.commits import StageCommits
from tidelog.sim.stage.members import StageMembers
from tidelog.sim.stage.stage import Stage
from tidelog.sim.stage.table import StageTable
from tidelog.sim.stage.transactions import StageTransactions
from tidelog.sim.stage.watching import Watcher
from tidelog.sim.stage.writing import StageLedger, StageWrite
from tidelog.sim.story.language import Condition


class ConditionVerdict(NamedTuple):
    holds: bool
    found: str
    """A description of the actual state."""


class Witness:
    """Evaluates conditions on the stage."""

    def __init__(self, stage: Stage, ledger: StageLedger, watcher: Watcher) -> None:
        self._stage = stage
        self._ledger = ledger
        self._watcher = watcher
        self.partitions: list[TopicPartition] = []
        self.commits = StageCommits(stage)
        self.members = StageMembers(stage)
        self.table = StageTable(stage)
        self.transactions = StageTransactions(stage)
        self.begun: StageWrite | None = None
        """The last write that a step has started without waiting for its response."""

    # -- resolving names ---------------------------------------------------------------------------

    def partition(self, text: str | None) -> TopicPartition:
        """The partition with this name. Without a name, the first partition that was created."""
        if text is None:
            return self.partitions[0]
        topic, _, index = text.rpartition("-")
        return TopicPartition(topic, int(index))

    def node(self, text: str) -> NodeId:
        if text == "none":
            return NO_NODE
        if text == "the controller":
            return self._stage.controller
        if text == "the leader":
            return self._stage.leader(self.partitions[0])
        if text.startswith("leader of "):
            return self._stage.leader(self.partition(text.removeprefix("leader of ")))
        return int(text)

    def nodes(self, text: str) -> list[NodeId]:
        if text == "all":
            return self._stage.cast.broker_ids
        if text[0].isdigit():
            return [int(word) for word in text.replace(",", " ").split()]
        return [] if text == "none" else [self.node(text)]

    # -- conditions on leaders, replicas and offsets -----------------------------------------------

    def judge(self, condition: Condition) -> ConditionVerdict:
        judge: Callable[[dict[str, str]], ConditionVerdict] = getattr(self, f"_{condition.kind}")
        return judge(condition.places)

    def _leading(self, partition: TopicPartition) -> Replica | None:
        """The leader's replica. None until the leader has learned that it was elected."""
        placed = self._stage.placed(partition)
        if placed is None or placed.leader == NO_NODE:
            return None
        replica = self._stage.replica(placed.leader, partition)
        leads = replica is not None and replica.leader is not None
        return replica if leads else None

    def _leader(self, places: dict[str, str]) -> ConditionVerdict:
        partition, wanted = self.partition(places["partition"]), self.node(places["node"])
        leader = self._stage.leader(partition)
        if leader == NO_NODE:
            return ConditionVerdict(wanted == NO_NODE, "nobody leads")
        knows = self._leading(partition) is not None
        return ConditionVerdict(leader == wanted and knows, f"{leader} leads")

    def _not_leader(self, places: dict[str, str]) -> ConditionVerdict:
        partition = self.partition(places["partition"])
        leader = self._stage.leader(partition)
        knows = self._leading(partition) is not None
        return ConditionVerdict(knows and leader != self.node(places["node"]), f"{leader} leads")

    def _isr_of(self, places: dict[str, str]) -> set[NodeId]:
        placed = self._stage.placed(self.partition(places["partition"]))
        return set() if placed is None else set(placed.isr)

    def _isr(self, places: dict[str, str]) -> ConditionVerdict:
        isr, wanted = self._isr_of(places), set(self.nodes(places["nodes"]))
        leading = self._leading(self.partition(places["partition"]))
        # The leader learns of the new in-sync set last. The condition holds only when the leader
        # knows this set.
        knows = leading is None or (leading.leader is not None and leading.leader.isr == wanted)
        return ConditionVerdict(isr == wanted and knows, f"in sync: {_told(isr)}")

    def _in_isr(self, places: dict[str, str]) -> ConditionVerdict:
        isr = self._isr_of(places)
        return ConditionVerdict(self.node(places["node"]) in isr, f"in sync: {_told(isr)}")

    def _not_in_isr(self, places: dict[str, str]) -> ConditionVerdict:
        isr = self._isr_of(places)
        return ConditionVerdict(self.node(places["node"]) not in isr, f"in sync: {_told(isr)}")

    def _offset(self, places: dict[str, str]) -> ConditionVerdict:
        fetched = self.commits.fetched
        return ConditionVerdict(fetched == int(places["number"]), f"offset {fetched}")

    def _kept(self, places: dict[str, str]) -> ConditionVerdict:
        return self._kept_by(self.commits)

    def _team_kept(self, places: dict[str, str]) -> ConditionVerdict:
        return self._kept_by(self.members.commits)

    def _one_owner(self, places: dict[str, str]) -> ConditionVerdict:
        twice = self.members.owned_twice
        names = ", ".join(f"{one.topic}-{one.partition}" for one in twice)
        return ConditionVerdict(not twice, f"two members own {names}")

    def _kept_by(self, commits: StageCommits) -> ConditionVerdict:
        found = f"{commits.acknowledged} was acknowledged, and {commits.fetched} is left"
        return ConditionVerdict(commits.fetched >= commits.acknowledged, found)

    def _visible(self, places: dict[str, str]) -> ConditionVerdict:
        visible = self.transactions.visible
        return ConditionVerdict(visible == int(places["number"]), f"{visible} are visible")

    def _stable(self, places: dict[str, str]) -> ConditionVerdict:
        leading = self._leading(self.partition(places["partition"]))
        if leading is None:
            return ConditionVerdict(False, "nobody leads")
        stable, end = leading.last_stable_offset, leading.log.log_end_offset
        return ConditionVerdict(stable == end, f"stable up to {stable} of {end}")

    def _unstable(self, places: dict[str, str]) -> ConditionVerdict:
        stable = self._stable(places)
        return ConditionVerdict(not stable.holds, "it has none")

    def _replicas(self, places: dict[str, str]) -> ConditionVerdict:
        placed = self._stage.placed(self.partition(places["partition"]))
        replicas = set(placed.replicas) if placed is not None else set()
        return ConditionVerdict(
            replicas == set(self.nodes(places["nodes"])), f"on {_told(replicas)}"
        )

    def _end(self, places: dict[str, str]) -> ConditionVerdict:
        replica = self._stage.replica(
            self.node(places["node"]), self.partition(places["partition"])
        )
        end = -1 if replica is None else replica.log.log_end_offset
        return ConditionVerdict(end == _number(places), f"its log ends at {end}")

    def _watermark(self, places: dict[str, str]) -> ConditionVerdict:
        replica = self._stage.replica(
            self.node(places["node"]), self.partition(places["partition"])
        )
        known = -1 if replica is None else replica.high_watermark
        return ConditionVerdict(known == _number(places), f"it knows {known}")

    def _fetched(self, places: dict[str, str]) -> ConditionVerdict:
        partition = self.partition(places["partition"])
        leading = self._leading(partition)
        if leading is None or leading.leader is None:
            return ConditionVerdict(False, "nobody leads")
        progress = follower_progress(leading.leader).get(self.node(places["node"]))
        return ConditionVerdict(progress is not None and progress.end != NO_OFFSET, "it has not")

    # -- conditions on records ---------------------------------------------------------------------

    def lost(self) -> int | None:
        """The number of lost records in all partitions; None while a partition has no leader."""
        lost = [self._ledger.lost(partition) for partition in self.partitions]
        if any(one is None for one in lost):
            return None
        return sum(len(one) for one in lost if one is not None)

    def _lost(self, places: dict[str, str]) -> ConditionVerdict:
        lost = self.lost()
        return ConditionVerdict(lost == _number(places), _told_lost(lost))

    def _lost_some(self, places: dict[str, str]) -> ConditionVerdict:
        lost = self.lost()
        return ConditionVerdict(lost is not None and lost >= _number(places), _told_lost(lost))

    def _acked(self, places: dict[str, str]) -> ConditionVerdict:
        acknowledged = self._ledger.count
        return ConditionVerdict(acknowledged == _number(places), f"acknowledged {acknowledged}")

    def _answered(self, places: dict[str, str]) -> ConditionVerdict:
        return ConditionVerdict(self.begun is not None and self.begun.is_done, "it is not answered")

    def _acked_one(self, places: dict[str, str]) -> ConditionVerdict:
        begun = self.begun
        return ConditionVerdict(begun is not None and begun.is_acknowledged, _told_write(begun))

    def _refused(self, places: dict[str, str]) -> ConditionVerdict:
        begun = self.begun
        is_refused = begun is not None and begun.is_done and not begun.is_acknowledged
        return ConditionVerdict(is_refused, _told_write(begun))

    def _has(self, places: dict[str, str]) -> ConditionVerdict:
        table = self.table
        return ConditionVerdict(table.values.get(places["key"]) == places["word"], table.told())

    def _lacks(self, places: dict[str, str]) -> ConditionVerdict:
        return ConditionVerdict(places["key"] not in self.table.values, self.table.told())

    def _equal(self, places: dict[str, str]) -> ConditionVerdict:
        partition = self.partition(places["partition"])
        placed = self._stage.placed(partition)
        assert placed is not None
        logs = {
            tuple((one.offset, one.value) for one in self._stage.records(node, partition))
            for node in placed.replicas
        }
        return ConditionVerdict(len(logs) == 1, f"there are {len(logs)} different logs")

    def _differ(self, places: dict[str, str]) -> ConditionVerdict:
        equal = self._equal(places)
        return ConditionVerdict(not equal.holds, "they are equal")

    # -- conditions on machines --------------------------------------------------------------------

    def _fenced(self, places: dict[str, str]) -> ConditionVerdict:
        broker = self._stage.image.brokers.get(self.node(places["node"]))
        return ConditionVerdict(broker is not None and broker.fenced, "it is not fenced")

    def _unfenced(self, places: dict[str, str]) -> ConditionVerdict:
        broker = self._stage.image.brokers.get(self.node(places["node"]))
        return ConditionVerdict(broker is not None and not broker.fenced, "it is fenced")

    def _up(self, places: dict[str, str]) -> ConditionVerdict:
        return ConditionVerdict(self._stage.hosts[self.node(places["node"])].is_up, "it is down")

    def _down(self, places: dict[str, str]) -> ConditionVerdict:
        return ConditionVerdict(not self._stage.hosts[self.node(places["node"])].is_up, "it is up")

    def _epoch(self, places: dict[str, str]) -> ConditionVerdict:
        epoch = self._stage.image.epoch
        return ConditionVerdict(epoch == _number(places), f"it is {epoch}")

    def _changes(self, places: dict[str, str]) -> ConditionVerdict:
        changes = self._watcher.isr_changes.get(places["partition"], 0)
        return ConditionVerdict(changes == _number(places), f"there were {changes}")

    def _some_changes(self, places: dict[str, str]) -> ConditionVerdict:
        changes = self._watcher.isr_changes.get(places["partition"], 0)
        return ConditionVerdict(changes >= _number(places), f"there were {changes}")


def _number(places: dict[str, str]) -> int:
    return int(places["number"])


def _told(nodes: set[NodeId]) -> str:
    return ",".join(map(str, sorted(nodes))) or "nobody"


def _told_lost(lost: int | None) -> str:
    return "unknown while a partition has no leader" if lost is None else f"lost {lost}"


def _told_write(write: StageWrite | None) -> str:
    if write is None or not write.is_done:
        return "it is not answered"
    if write.is_acknowledged:
        return "it is acknowledged"
    return "there was no answer" if write.error is None else f"it is refused: {write.error.name}"
