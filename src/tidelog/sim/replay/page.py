"""Writes a run as one HTML page, which loads no other file."""

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
    """The number of acknowledged records after the step."""
    lost: int | None = None
    """How many acknowledged records the leaders' logs lack; None if a partition has no leader."""


class RecordedRun(NamedTuple):
    title: str
    about: str
    brokers: Sequence[NodeId]
    steps: Sequence[StepShown]
    frames: Sequence[Frame]
    mutant: str | None = None


def page(run: RecordedRun) -> str:
    """The HTML document."""
    template = (files("tidelog.sim.replay") / "page.html").read_text(encoding="utf-8")
    told = json.dumps(_plain(run), separators=(",", ":"), ensure_ascii=False)
    # Text of the run must not close the script element that contains this text.
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
    """The index of the first frame in which a replica has a record. The page opens there."""
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
