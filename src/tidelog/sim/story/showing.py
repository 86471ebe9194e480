"""The data of a played story for the replay page."""

from tidelog.sim.replay.page import RecordedRun, StepShown
from tidelog.sim.story.playing import Played


def as_run(played: Played) -> RecordedRun:
    steps = [
        StepShown(
            step.text,
            step.note,
            played.outcomes.get(number, ""),
            played.broken.get(number, ""),
            step.kind == "expect",
            *played.promised.get(number, (None, None)),
        )
        for number, step in enumerate(played.story.steps)
    ]
    story = played.story
    return RecordedRun(
        story.title, story.about, played.brokers, steps, played.frames, played.mutant
    )
