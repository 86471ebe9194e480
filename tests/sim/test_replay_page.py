"""The content of the page that replays a run."""

import json
import re

from tidelog.sim.replay.page import RecordedRun, StepShown, first_write, page
from tidelog.sim.replay.recorded import recorded_run
from tidelog.sim.replay.scene import Frame, PartitionScene, ReplayScene, ReplicaScene, happenings
from tidelog.sim.runs.plan import WORKLOADS, Plan
from tidelog.sim.runs.recorder import Recorder
from tidelog.sim.runs.run import simulate
from tidelog.sim.story import library
from tidelog.sim.story.playing import play
from tidelog.sim.story.showing import as_run


def run_in(document: str) -> dict[str, object]:
    [recounted] = re.findall(r'<script type="application/json" id="run">(.*?)</script>', document)
    decoded = json.loads(recounted)
    assert isinstance(decoded, dict)
    return decoded


def test_a_page_needs_nothing_from_outside() -> None:
    document = page(as_run(play(library.story("a_leader_dies_and_a_follower_takes_over"))))

    assert not re.search(r"https?://|src=|@import|url\(", document)


def test_nothing_in_a_run_can_end_the_element_that_carries_it() -> None:
    nasty = "</script><script>alert(1)</script>"
    document = page(RecordedRun(nasty, nasty, [1], [StepShown(nasty)], []))

    assert nasty not in document
    assert run_in(document)["title"] == nasty


def test_a_seed_has_its_faults_as_steps_and_every_election_among_its_moments() -> None:
    recorder = Recorder()
    outcome = simulate(Plan(1, 3, 10, workload=WORKLOADS["light"]), recorder)
    assert outcome.failure is None

    run = recorded_run(recorder, "Seed 1", "", 3)

    assert len(run.steps) == len(recorder.marks) + 1
    assert run.frames
    assert [frame.at_ms for frame in run.frames] == sorted(frame.at_ms for frame in run.frames)
    recounted = {what for frame in run.frames for what in frame.happened}
    for mark in recorder.marks:
        assert mark.what in recounted
    assert all(run_in(page(run))[key] for key in ("frames", "steps", "brokers"))


def test_a_story_opens_at_its_first_write() -> None:
    run = as_run(play(library.story("a_leader_dies_and_a_follower_takes_over")))

    opens = run_in(page(run))["opens"]

    assert isinstance(opens, int)
    assert opens > 0
    ends = [
        max((one.end for part in frame.scene.partitions for one in part.replicas), default=0)
        for frame in run.frames
    ]
    assert max(ends[:opens]) == 0
    assert ends[opens] > 0
    assert first_write([]) == 0


def scene(leader: int, isr: tuple[int, ...], end: int, state: str = "up") -> ReplayScene:
    replicas = (ReplicaScene(1, end, end), ReplicaScene(2, 5, 5))
    partition = PartitionScene("orders-0", leader, leader, isr, (), replicas)
    return ReplayScene(((1, state), (2, "up")), 101, (partition,))


def test_the_difference_of_two_scenes_is_told_in_words() -> None:
    recounted = list(happenings(scene(1, (1, 2), 7), scene(2, (2,), 5, "down")))

    assert recounted == [
        "broker 1 is down",
        "orders-0 is led by 2 in epoch 2",
        "in-sync set of orders-0: 1,2 -> 2",
        "1 cuts its log of orders-0 from 7 to 5",
    ]
    assert list(happenings(scene(1, (1, 2), 7), scene(1, (2, 1), 8))) == []
    assert Frame(0, 0, (), scene(1, (1,), 1)).scene.partition("payments-0") is None
