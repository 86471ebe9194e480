"""Plays a story and records it: a transcript for readers, frames for the replay page.

If an expectation fails, the story continues, so that the transcript shows the consequences. The
story ends early if a wait times out, or if an assertion of a node fails.
"""

from dataclasses import dataclass, field

from tidelog.model.ids import NodeId, Offset
from tidelog.sim.mutants import MUTANTS
from tidelog.sim.replay.scene import Frame, PartitionScene, ReplayScene
from tidelog.sim.rules import TODAYS, applied_rules
from tidelog.sim.stage.cast import Cast
from tidelog.sim.stage.stage import Stage
from tidelog.sim.stage.watching import Watcher
from tidelog.sim.stage.writing import StageLedger
from tidelog.sim.story.acting import LIMIT_MS, Actor, millis
from tidelog.sim.story.conditions import Witness
from tidelog.sim.story.language import SETUP, BadStory, Step, Story


@dataclass(slots=True)
class Played:
    story: Story
    mutant: str | None
    transcript: list[str] = field(default_factory=list)
    failures: list[str] = field(default_factory=list)
    """The failed conditions, each with its line."""
    frames: list[Frame] = field(default_factory=list)
    outcomes: dict[int, str] = field(default_factory=dict)
    """The result of each step, if the observed changes do not show it."""
    broken: dict[int, str] = field(default_factory=dict)
    """The failed condition of each step that has failed."""
    brokers: list[NodeId] = field(default_factory=list)
    promised: dict[int, tuple[int, int | None]] = field(default_factory=dict)
    """After each step: the number of acknowledged records, and how many of them are lost."""


def play(story: Story, mutant: str | None = None) -> Played:
    """Play a story with `mutant`, else with the mutant that it names, else with the right rules."""
    cast, named, delay_ms = _cast(story)
    name = mutant or named
    played = Played(story, name, brokers=cast.broker_ids)
    with applied_rules(MUTANTS[name].rules() if name is not None else TODAYS):
        stage = Stage(cast)
        stage.network.delay_ms = delay_ms
        _Player(story, stage, played).play()
    return played


def _cast(story: Story) -> tuple[Cast, str | None, int]:
    cast, mutant, delay_ms = Cast(), None, 3
    for step in story.steps:
        places = step.places
        match step.kind:
            case "brokers":
                cast.brokers = int(places["number"])
            case "controllers":
                cast.controllers = int(places["number"])
            case "seed":
                cast.seed = int(places["number"])
            case "set":
                cast.settings[places["key"]] = places["value"]
            case "delay":
                delay_ms = max(1, millis(places["time"]))
            case "mutant":
                mutant = places["name"]
                if mutant not in MUTANTS:
                    known = ", ".join(MUTANTS)
                    raise BadStory(step.line, f"no mutant is called {mutant!r}; there are: {known}")
            case _:
                break
    return cast, mutant, delay_ms


class _Player:
    def __init__(self, story: Story, stage: Stage, played: Played) -> None:
        self._story = story
        self._stage = stage
        self._played = played
        self._watcher = Watcher(stage)
        self._ledger = StageLedger(stage)
        self._witness = Witness(stage, self._ledger, self._watcher)
        self._actor = Actor(stage, self._ledger, self._watcher, self._witness)

    def play(self) -> None:
        self._stage.begin()
        self._watcher.frames.clear()
        self._watcher.look()
        for number, step in enumerate(self._story.steps):
            self._watcher.step = number
            seen = len(self._watcher.frames)
            try:
                goes_on = self._take(number, step)
            except AssertionError as bug:
                self._fail(number, f"a node stopped itself: {bug or 'an assertion'}")
                goes_on = False
            self._tell(number, step, seen)
            if step.kind not in SETUP:
                self._watcher.close_step()
                self._played.promised[number] = self._ledger.count, self._witness.lost()
            if not goes_on:
                break
        self._played.frames = self._watcher.frames

    def _take(self, number: int, step: Step) -> bool:
        """Execute a step; return whether the story can continue."""
        if step.kind in SETUP:
            return True
        if step.condition is None:
            self._played.outcomes[number] = self._actor.act(step)
            return True
        condition = step.condition
        if step.kind == "wait_until":
            self._stage.run_until(lambda: self._witness.judge(condition).holds, LIMIT_MS)
        verdict = self._witness.judge(condition)
        if not verdict.holds:
            self._fail(number, f"{step.text}: {verdict.found}")
        return verdict.holds or step.kind == "expect"

    def _fail(self, number: int, sentence: str) -> None:
        self._played.broken[number] = sentence
        self._played.failures.append(f"line {self._story.steps[number].line}: {sentence}")

    def _tell(self, number: int, step: Step, seen: int) -> None:
        told = self._played.transcript
        told.append(f"> {step.text}")
        frames = self._watcher.frames
        told += [f"  {what}" for frame in frames[seen:] for what in frame.happened]
        if outcome := self._played.outcomes.get(number):
            told.append(f"  {outcome}")
        before = frames[seen - 1].scene if seen else None
        told += [f"  {line}" for line in _progress(before, self._watcher.scene)]
        if number in self._played.broken:
            told.append(f"  FAILED: {self._played.broken[number]}")


def _progress(old: ReplayScene | None, new: ReplayScene) -> list[str]:
    """The offsets of the replicas, if they have changed."""
    told = []
    for partition in new.partitions:
        was = old.partition(partition.name) if old is not None else None
        if was is None or _ends(was) != _ends(partition):
            told.append(f"{partition.name}: {_ends(partition)}")
    return told


def _ends(partition: PartitionScene) -> str:
    """Each replica's log end offset and high watermark; a star marks the leader."""

    def told(node: NodeId, end: Offset, high_watermark: Offset) -> str:
        star = "*" if node == partition.leader else ""
        return f"{star}{node} end {end} hw {high_watermark}"

    return ", ".join(told(one.node, one.end, one.high_watermark) for one in partition.replicas)
