"""Observes a stage after every simulated event, and adds a frame when the scene has changed."""

from tidelog.model.ids import NO_NODE, NodeId, TopicPartition
from tidelog.node.partitions.replica import Replica
from tidelog.protocol.records.batch import iterate
from tidelog.sim.machines.host import SimHost
from tidelog.sim.replay.scene import Frame, PartitionScene, ReplayScene, ReplicaScene, happenings
from tidelog.sim.stage.stage import Stage


class Watcher:
    def __init__(self, stage: Stage) -> None:
        self.frames: list[Frame] = []
        self.step = 0
        self.isr_changes: dict[str, int] = {}
        self.cut_off: set[NodeId] = set()
        """The nodes that the story has isolated, which are shown as cut off."""
        self.cuts: list[str] = []
        """Descriptions of the single links that the story has cut."""
        self._stage = stage
        self._partitions: list[TopicPartition] = []
        self._running: dict[tuple[NodeId, TopicPartition], ReplicaScene] = {}
        self._at_rest: dict[tuple[NodeId, TopicPartition], ReplicaScene] = {}
        stage.watcher = self.look

    def watch(self, partition: TopicPartition) -> None:
        self._partitions.append(partition)

    @property
    def scene(self) -> ReplayScene:
        return self.frames[-1].scene

    def look(self) -> None:
        """Add a frame if the scene has changed."""
        scene = self._look()
        if self.frames and self.scene == scene:
            return
        happened: tuple[str, ...] = ()
        if self.frames:
            self._count(self.scene, scene)
            happened = tuple(happenings(self.scene, scene))
        self.frames.append(Frame(self._stage.now, self.step, happened, scene))

    def close_step(self) -> None:
        """Add a frame for a step during which nothing changed."""
        if self.frames[-1].step != self.step:
            self.frames.append(Frame(self._stage.now, self.step, (), self.scene))

    def _count(self, old: ReplayScene, new: ReplayScene) -> None:
        for partition in new.partitions:
            was = old.partition(partition.name)
            if was is not None and set(was.isr) != set(partition.isr):
                self.isr_changes[partition.name] = self.isr_changes.get(partition.name, 0) + 1

    def _look(self) -> ReplayScene:
        stage = self._stage
        hosts = [*stage.brokers, *stage.controllers]
        return ReplayScene(
            tuple((host.id, self._state(host)) for host in hosts),
            stage.controller,
            tuple(scene for one in self._partitions if (scene := self._partition(one)) is not None),
            tuple(self.cuts),
        )

    def _state(self, host: SimHost) -> str:
        if host.node is None:
            return "down"
        if host.is_paused:
            return "paused"
        if host.id in self.cut_off:
            return "cut off"
        broker = self._stage.image.brokers.get(host.id)
        if broker is not None and broker.fenced:
            return "fenced"
        return "up"

    def _partition(self, partition: TopicPartition) -> PartitionScene | None:
        placed = self._stage.placed(partition)
        if placed is None:
            return None
        replicas = tuple(
            scene
            for node in placed.replicas
            if (scene := self._replica(node, partition)) is not None
        )
        name = f"{partition.topic}-{partition.partition}"
        has_leader = placed.leader != NO_NODE
        leader = placed.leader if has_leader else NO_NODE
        return PartitionScene(name, leader, placed.leader_epoch, placed.isr, placed.elr, replicas)

    def _replica(self, node: NodeId, partition: TopicPartition) -> ReplicaScene | None:
        replica = self._stage.replica(node, partition)
        key = node, partition
        if replica is not None:
            self._at_rest.pop(key, None)
            scene = self._running[key] = _running(node, replica)
            return scene
        if key not in self._at_rest:
            self._at_rest[key] = self._on_disk(node, partition)
        return self._at_rest[key]

    def power_lost(self, node: NodeId) -> None:
        """Read the logs of this node from its disk again, because the disk has changed."""
        for partition in self._partitions:
            self._at_rest.pop((node, partition), None)

    def _on_disk(self, node: NodeId, partition: TopicPartition) -> ReplicaScene:
        """The replica in the files of a node that is down or has not opened the replica yet."""
        disk, directory = self._stage.hosts[node].disk, f"{partition.topic}-{partition.partition}"
        epochs: dict[int, int] = {}
        end = 0
        for name in disk.list(directory):
            if name.endswith(".log"):
                for _, header in iterate(disk.read_file(f"{directory}/{name}")):
                    epochs.setdefault(header.leader_epoch, header.base_offset)
                    end = header.last_offset + 1
        last = self._running.get((node, partition))
        high_watermark = min(end, last.high_watermark) if last is not None else 0
        return ReplicaScene(node, end, high_watermark, tuple(sorted(epochs.items())))


def _running(node: NodeId, replica: Replica) -> ReplicaScene:
    log = replica.log
    entries = log.epoch_starts
    epochs = tuple((one.epoch, one.start_offset) for one in entries)
    return ReplicaScene(node, log.log_end_offset, replica.high_watermark, epochs)
