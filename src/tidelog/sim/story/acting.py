"""Executes the steps of a story on its stage. The results appear in the transcript."""

from collections.abc import Callable
from typing import Any

from tidelog.model.errors import ErrorCode
from tidelog.model.ids import NO_NODE, Millis, NodeId, TopicPartition
from tidelog.sim.clients.messages import create_topic
from tidelog.sim.machines.disk import SimDisk
from tidelog.sim.machines.host import SimHost
from tidelog.sim.stage.commits import COORDINATOR
from tidelog.sim.stage.requests import reassign
from tidelog.sim.stage.stage import Stage
from tidelog.sim.stage.table import FILLER, FILLER_BYTES
from tidelog.sim.stage.watching import Watcher
from tidelog.sim.stage.writing import StageLedger, StageWrite
from tidelog.sim.story.conditions import Witness
from tidelog.sim.story.language import Step

LIMIT_MS: Millis = 60_000
_GARBAGE = bytes(range(128, 256))


class Actor:
    def __init__(
        self, stage: Stage, ledger: StageLedger, watcher: Watcher, witness: Witness
    ) -> None:
        self._stage = stage
        self._ledger = ledger
        self._watcher = watcher
        self._witness = witness

    def act(self, step: Step) -> str:
        """Execute a step; returns its result in words, or "" if the observed changes show it."""
        acting: Callable[[dict[str, str]], str] = getattr(self, f"_{step.kind}")
        return acting(step.places)

    # -- topics and records ------------------------------------------------------------------------

    def _topic(self, places: dict[str, str]) -> str:
        return self._make(places, self._witness.nodes(places["nodes"]))

    def _topic_rf(self, places: dict[str, str]) -> str:
        return self._make(places, list(range(1, int(places["factor"]) + 1)))

    def _make(self, places: dict[str, str], replicas: list[NodeId]) -> str:
        configs: dict[str, Any] = dict(
            one.split("=", 1) for one in places.get("configs", "").split()
        )
        if "number" in places:
            configs["min.insync.replicas"] = places["number"]
        partition = TopicPartition(places["name"], 0)
        wish = create_topic(places["name"], on=[replicas], **configs)
        answer = self._stage.ask(replicas[0], wish)
        if answer is None or answer.topics[0].error_code is not ErrorCode.none:
            return "the topic could not be made"
        self._witness.partitions.append(partition)
        self._watcher.watch(partition)
        everyone = [self._stage.hosts[node] for node in replicas]

        def is_known() -> bool:
            return all(host.node and host.node.image.partition(partition) for host in everyone)

        self._stage.run_until(is_known, LIMIT_MS)
        self._stage.run(100)  # let all followers start to fetch
        return ""

    def _write(self, places: dict[str, str]) -> str:
        done: list[StageWrite] = []
        for _ in range(int(places["number"])):
            done.append(self._begin_write(places))
            self._stage.run_until(lambda: done[-1].is_done, LIMIT_MS)
        if places.get("acks") == "0":
            self._stage.run(20)  # there is no response, so wait until the records have arrived
        return _told(done)

    def _begin(self, places: dict[str, str]) -> str:
        self._witness.begun = self._begin_write(places)
        self._stage.run(10)
        return ""

    def _begin_write(self, places: dict[str, str]) -> StageWrite:
        partition = self._witness.partition(places.get("partition"))
        acks = {"all": -1, "0": 0, "1": 1}[places.get("acks", "all")]
        node = self._witness.node(places["node"]) if "node" in places else NO_NODE
        return self._ledger.begin(partition, acks, node=node)

    def _burst(self, places: dict[str, str]) -> str:
        partition = self._witness.partition(places.get("partition"))
        end = self._stage.now + millis(places["span"])
        batches = 0
        while self._stage.now < end:
            self._ledger.begin(partition, 1, records=int(places["number"]))
            batches += 1
            self._stage.run(millis(places["time"]))
        return f"{batches} batches of {places['number']} records"

    def _commit(self, places: dict[str, str]) -> str:
        commits = self._witness.commits
        return commits.commit(self._witness.partitions[-1], int(places["number"]))

    def _fetch(self, places: dict[str, str]) -> str:
        return self._witness.commits.fetch(self._witness.partitions[-1])

    def _joins(self, places: dict[str, str]) -> str:
        internal = COORDINATOR.topic
        topics = {one.topic for one in self._witness.partitions if one.topic != internal}
        return self._witness.members.join(places["name"], sorted(topics))

    def _beats(self, places: dict[str, str]) -> str:
        return self._witness.members.beat(places["name"])

    def _reports(self, places: dict[str, str]) -> str:
        return self._witness.members.report(places["name"])

    def _saves(self, places: dict[str, str], *, late: bool = False) -> str:
        partition, offset = self._witness.partition(places["partition"]), int(places["number"])
        return self._witness.members.commit(places["name"], partition, offset, late=late)

    def _saves_late(self, places: dict[str, str]) -> str:
        return self._saves(places, late=True)

    def _looks(self, places: dict[str, str]) -> str:
        partition = self._witness.partition(places["partition"])
        return self._witness.members.commits.fetch(partition)

    def _put(self, places: dict[str, str]) -> str:
        return self._witness.table.put(self._witness.partition(None), places["key"], places["word"])

    def _put_committed(self, places: dict[str, str]) -> str:
        partition, table = self._witness.partition(None), self._witness.table
        return table.put(partition, places["key"], places["word"], in_transaction=True)

    def _drop(self, places: dict[str, str]) -> str:
        return self._witness.table.put(self._witness.partition(None), places["key"], None)

    def _fill(self, places: dict[str, str]) -> str:
        partition, value = self._witness.partition(None), "." * FILLER_BYTES
        for _ in range(int(places["number"])):
            told = self._witness.table.put(partition, FILLER, value)
            if told:
                return told
        return ""

    def _read(self, places: dict[str, str]) -> str:
        return self._witness.table.read(self._witness.partition(None))

    def _reread(self, places: dict[str, str]) -> str:
        self._witness.table.restart()
        return self._read(places)

    # -- transactions ------------------------------------------------------------------------------

    def _start_producer(self, places: dict[str, str]) -> str:
        return self._witness.transactions.start()

    def _write_in(self, places: dict[str, str]) -> str:
        return self._witness.transactions.write(self._witness.partitions[-1])

    def _write_late(self, places: dict[str, str]) -> str:
        return self._witness.transactions.write_late(self._witness.partitions[-1])

    def _commit_it(self, places: dict[str, str]) -> str:
        return self._witness.transactions.end(commits=True)

    def _abort_it(self, places: dict[str, str]) -> str:
        return self._witness.transactions.end(commits=False)

    def _end_again(self, places: dict[str, str]) -> str:
        return self._witness.transactions.end_again()

    def _read_committed(self, places: dict[str, str]) -> str:
        return self._witness.transactions.read(self._witness.partitions[-1])

    def _move(self, places: dict[str, str]) -> str:
        partition = self._witness.partition(places["partition"])
        wish = reassign(partition, self._witness.nodes(places["nodes"]))
        answer = self._stage.ask(self._stage.leader(partition), wish)
        error = None if answer is None else answer.responses[0].partitions[0].error_code
        return "" if error is ErrorCode.none else "the replicas could not be moved"

    # -- stopping, damaging and starting machines --------------------------------------------------

    def _each(self, places: dict[str, str], act: Callable[[SimHost], None]) -> str:
        for node in self._witness.nodes(places["some"]):
            act(self._stage.hosts[node])
        self._watcher.look()
        return ""

    def _kill(self, places: dict[str, str]) -> str:
        return self._each(places, lambda host: host.kill() if host.is_up else None)

    def _power_off(self, places: dict[str, str]) -> str:
        def power_off(host: SimHost) -> None:
            self._stage.power_off(host.id)
            self._watcher.power_lost(host.id)

        return self._each(places, power_off)

    def _wipe(self, places: dict[str, str]) -> str:
        def wipe(host: SimHost) -> None:
            host.wipe()
            self._watcher.power_lost(host.id)

        return self._each(places, wipe)

    def _spoil(self, places: dict[str, str]) -> str:
        return self._on_file(places, lambda disk, path: disk.write_file(path, _GARBAGE))

    def _flip(self, places: dict[str, str]) -> str:
        return self._on_file(places, lambda disk, path: disk.flip_bit(path, 4 * disk.size(path)))

    def _remove(self, places: dict[str, str]) -> str:
        return self._on_file(places, SimDisk.remove)

    def _on_file(self, places: dict[str, str], act: Callable[[SimDisk, str], None]) -> str:
        disk = self._stage.hosts[self._witness.node(places["node"])].disk
        path = f"{places['partition']}/{places['file']}"
        if not disk.exists(path):
            return "there is no such file"
        act(disk, path)
        return ""

    def _pause(self, places: dict[str, str]) -> str:
        return self._each(places, SimHost.pause)

    def _resume(self, places: dict[str, str]) -> str:
        return self._each(places, SimHost.resume)

    def _start(self, places: dict[str, str]) -> str:
        return self._each(places, lambda host: None if host.is_up else host.start())

    def _shut_down(self, places: dict[str, str]) -> str:
        def shut_down(host: SimHost) -> None:
            host.shutdown()
            self._stage.run_until(lambda: not host.is_up, LIMIT_MS)

        return self._each(places, shut_down)

    # -- the network -------------------------------------------------------------------------------

    def _cut_from(self, places: dict[str, str]) -> str:
        one, other = self._witness.node(places["node"]), self._witness.node(places["other"])
        self._stage.network.partition(self._stage.hosts[one].name, self._stage.hosts[other].name)
        return self._cut(f"{one} \u2702 {other}")

    def _cut_to(self, places: dict[str, str]) -> str:
        one, other = self._witness.node(places["node"]), self._witness.node(places["other"])
        self._stage.network.cut(self._stage.hosts[one].name, self._stage.hosts[other].name)
        return self._cut(f"{one} \u2702\u2192 {other}")

    def _cut(self, told: str) -> str:
        self._watcher.cuts.append(told)
        self._watcher.look()
        return ""

    def _isolate(self, places: dict[str, str]) -> str:
        def isolate(host: SimHost) -> None:
            self._stage.network.isolate(host.name)
            self._watcher.cut_off.add(host.id)

        return self._each(places, isolate)

    def _heal(self, places: dict[str, str]) -> str:
        self._stage.network.heal()
        self._watcher.cut_off.clear()
        self._watcher.cuts.clear()
        self._watcher.look()
        return ""

    # -- waiting -----------------------------------------------------------------------------------

    def _wait(self, places: dict[str, str]) -> str:
        self._stage.run(millis(places["time"]))
        return ""


def millis(text: str) -> Millis:
    number = int("".join(letter for letter in text if letter.isdigit()))
    return number if text.endswith("ms") else number * 1_000


def _told(writes: list[StageWrite]) -> str:
    """Merge consecutive equal results into one text: `3 acknowledged, then 1 refused`."""
    told: list[tuple[str, int]] = []
    for write in writes:
        if write.is_acknowledged:
            what = "acknowledged"
        elif write.error is None:
            what = "without an answer"
        else:
            what = f"refused: {write.error.name}"
        if told and told[-1][0] == what:
            told[-1] = what, told[-1][1] + 1
        else:
            told.append((what, 1))
    return ", then ".join(f"{count} {what}" for what, count in told)
