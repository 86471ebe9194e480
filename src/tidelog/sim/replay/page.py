"""Writes a run as one page: no other file, no address from outside."""

import json
from collections.abc import Sequence
from html import escape
from importlib.resources import files
from typing import Any, NamedTuple

from tidelog.model.ids import NodeId
from tidelog.sim.replay.scene import Frame, PartitionScene


class StepShown(NamedTuple):
    text: str
    note: str = ""
    outcome: str = ""
    failed: str = ""
    expects: bool = False
    acknowledged: int | None = None
    """How many records clients had been promised when it was over."""
    lost: int | None = None
    """How many of them the leaders' logs lacked; None while somebody has no leader."""


class RecordedRun(NamedTuple):
    title: str
    about: str
    brokers: Sequence[NodeId]
    steps: Sequence[StepShown]
    frames: Sequence[Frame]
    mutant: str | None = None


def page(run: RecordedRun) -> str:
    """The whole document."""
    template = (files("tidelog.sim.replay") / "page.html").read_text(encoding="utf-8")
    told = json.dumps(_plain(run), separators=(",", ":"), ensure_ascii=False)
    # Nothing in the run may end the element that carries it.
    safe = told.replace("<", "\\u003c")
    return template.replace("@TITLE@", escape(run.title)).replace("@RUN@", safe)


def _plain(run: RecordedRun) -> dict[str, Any]:
    return {
        "title": run.title,
        "about": run.about,
        "mutant": run.mutant,
        "brokers": list(run.brokers),
        "steps": [step._asdict() for step in run.steps],
        "frames": [_frame(frame) for frame in run.frames],
        "opens": first_write(run.frames),
    }


def first_write(frames: Sequence[Frame]) -> int:
    """The first moment at which a replica holds a record: there is nothing to see before it."""
    for place, frame in enumerate(frames):
        replicas = (one for partition in frame.scene.partitions for one in partition.replicas)
        if any(replica.end > 0 for replica in replicas):
            return place
    return 0


def _frame(frame: Frame) -> dict[str, Any]:
    scene = frame.scene
    return {
        "t": frame.at_ms,
        "s": frame.step,
        "w": list(frame.happened),
        "m": {str(node): state for node, state in scene.machines},
        "c": scene.controller,
        "x": list(scene.cuts),
        "p": [_partition(partition) for partition in scene.partitions],
    }


def _partition(partition: PartitionScene) -> dict[str, Any]:
    return {
        "name": partition.name,
        "leader": partition.leader,
        "epoch": partition.leader_epoch,
        "isr": list(partition.isr),
        "elr": list(partition.elr),
        "r": [
            {"id": one.node, "end": one.end, "hw": one.high_watermark, "ep": list(one.epochs)}
            for one in partition.replicas
        ],
    }
