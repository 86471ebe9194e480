"""Converts the recorded run of a seed for the page. Faults become steps, moments become frames.

Logs grow thousands of times in a run, so growth alone adds a frame only every 250 ms of simulated
time. Every election, change of the in-sync set, truncation and fault adds a frame.
"""

from collections.abc import Iterator
from typing import NamedTuple

from tidelog.model.ids import METADATA_TOPIC, NO_NODE, Millis, NodeId, TopicPartition
from tidelog.sim.replay.page import RecordedRun, StepShown
from tidelog.sim.replay.scene import Frame, PartitionScene, ReplayScene, ReplicaScene, happenings
from tidelog.sim.runs.recorder import Moment, Recorder, TimelineMark

CALM_MS: Millis = 250
MOST_FRAMES = 4_000


class _News(NamedTuple):
    at_ms: Millis
    partition: TopicPartition | None
    what: Moment | TimelineMark


def recorded_run(recorder: Recorder, title: str, about: str, nodes: int) -> RecordedRun:
    frames = list(_frames(recorder, nodes))
    steps = [StepShown("the cluster starts, and clients begin")]
    steps += [StepShown(mark.what) for mark in recorder.marks]
    return RecordedRun(title, about, range(1, nodes + 1), steps, frames[:MOST_FRAMES])


def _in_order(recorder: Recorder) -> list[_News]:
    news = [_News(mark.at_ms, None, mark) for mark in recorder.marks]
    for partition, moments in recorder.partitions.items():
        if partition.topic != METADATA_TOPIC:
            news += [_News(moment.at_ms, partition, moment) for moment in moments]
    return sorted(news, key=lambda one: one.at_ms)


def _frames(recorder: Recorder, nodes: int) -> Iterator[Frame]:
    now: dict[TopicPartition, PartitionScene] = {}
    running: set[NodeId] = set(range(1, nodes + 1))
    scene = ReplayScene((), NO_NODE, ())
    step, last_at = 0, -CALM_MS
    for news in _in_order(recorder):
        told: tuple[str, ...] = ()
        if isinstance(news.what, TimelineMark):
            step += 1
            told = (news.what.what,)
        else:
            assert news.partition is not None
            known = now.get(news.partition)
            now[news.partition] = _partition(news.partition, news.what, known)
            running = {node for node, _ in news.what.replicas} | (running - _placed(known))
        machines = tuple((node, "up" if node in running else "down") for node in _ids(nodes))
        new = ReplayScene(machines, NO_NODE, tuple(now[key] for key in sorted(now)))
        told += tuple(happenings(scene, new))
        if told or news.at_ms - last_at >= CALM_MS:
            yield Frame(max(0, news.at_ms), step, told, new)
            scene, last_at = new, news.at_ms


def _ids(nodes: int) -> range:
    return range(1, nodes + 1)


def _placed(partition: PartitionScene | None) -> set[NodeId]:
    return set() if partition is None else {one.node for one in partition.replicas}


def _partition(
    partition: TopicPartition, moment: Moment, known: PartitionScene | None
) -> PartitionScene:
    """The partition at this moment. Replicas on stopped nodes keep their last known state."""
    replicas = {one.node: one for one in known.replicas} if known is not None else {}
    epochs = max((one.epochs for one in replicas.values()), key=len, default=())
    leading = dict(moment.replicas).get(moment.leader)
    if leading is not None and moment.leader_epoch not in dict(epochs):
        epochs = (*epochs, (moment.leader_epoch, leading.end))
    for node, state in moment.replicas:
        kept = tuple(one for one in epochs if one[1] <= state.end)
        replicas[node] = ReplicaScene(node, state.end, state.high_watermark, kept)
    return PartitionScene(
        f"{partition.topic}-{partition.partition}",
        moment.leader,
        moment.leader_epoch,
        moment.isr,
        moment.elr,
        tuple(replicas[node] for node in sorted(replicas)),
    )
