"""The page that replays a run, opened in a real browser."""

import json
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from tidelog.sim.plan import WORKLOADS, Plan
from tidelog.sim.recorder import Recorder
from tidelog.sim.replay.page import Run, StepShown, page
from tidelog.sim.replay.recorded import recorded_run
from tidelog.sim.replay.scene import Frame, PartitionScene, ReplicaScene, Scene, happenings
from tidelog.sim.run import simulate
from tidelog.sim.story import library
from tidelog.sim.story.playing import play
from tidelog.sim.story.showing import as_run

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def browser() -> str:
    subprocess.run([ROOT / "tools/test-needs", "chromium"], check=True)
    found = shutil.which("chromium")
    assert found is not None
    return found


def opened(browser: str, file: Path, moment: int) -> str:
    """The document as it is after its script has run."""
    arguments = ["--headless", "--no-sandbox", "--disable-gpu", "--dump-dom"]
    address = f"{file.as_uri()}#{moment}"
    done = subprocess.run(
        [browser, *arguments, address], capture_output=True, text=True, check=True
    )
    return re.sub(r"<script.*?</script>", "", done.stdout, flags=re.DOTALL)


def run_in(document: str) -> dict[str, object]:
    [told] = re.findall(r'<script type="application/json" id="run">(.*?)</script>', document)
    decoded = json.loads(told)
    assert isinstance(decoded, dict)
    return decoded


def test_a_story_can_be_watched(browser: str, tmp_path: Path) -> None:
    run = as_run(play(library.story("a_leader_dies_and_a_follower_takes_over")))
    file = tmp_path / "page.html"
    file.write_text(page(run), encoding="utf-8")

    seen = opened(browser, file, len(run.frames) - 1)

    assert f"moment {len(run.frames)} of {len(run.frames)}" in seen
    assert seen.count('class="lane insync"') == 3
    assert "leader 2, epoch 1" in seen
    assert "8 acknowledged, 0 lost" in seen
    assert seen.count('class="rec"') == 24, "eight records on each of three replicas"
    assert "as expected" in seen


def test_a_mutant_is_said_to_be_one_and_its_failure_shown(browser: str, tmp_path: Path) -> None:
    story = library.story("a_follower_does_not_cut_to_its_watermark")
    run = as_run(play(story, "truncate-to-hw"))
    file = tmp_path / "page.html"
    file.write_text(page(run), encoding="utf-8")
    failed = next(number for number, step in enumerate(run.steps) if step.failed)
    moment = max(index for index, frame in enumerate(run.frames) if frame.step == failed)

    seen = opened(browser, file, moment)

    assert "with the wrong rule truncate-to-hw" in seen
    assert "expect lost 0: lost 1" in seen


def test_a_page_needs_nothing_from_outside() -> None:
    document = page(as_run(play(library.story("a_leader_dies_and_a_follower_takes_over"))))

    assert not re.search(r"https?://|src=|@import|url\(", document)


def test_nothing_in_a_run_can_end_the_element_that_carries_it() -> None:
    nasty = "</script><script>alert(1)</script>"
    document = page(Run(nasty, nasty, [1], [StepShown(nasty)], []))

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
    told = {what for frame in run.frames for what in frame.happened}
    for mark in recorder.marks:
        assert mark.what in told
    assert all(run_in(page(run))[key] for key in ("frames", "steps", "brokers"))


def scene(leader: int, isr: tuple[int, ...], end: int, state: str = "up") -> Scene:
    replicas = (ReplicaScene(1, end, end), ReplicaScene(2, 5, 5))
    partition = PartitionScene("orders-0", leader, leader, isr, (), replicas)
    return Scene(((1, state), (2, "up")), 101, (partition,))


def test_the_difference_of_two_scenes_is_told_in_words() -> None:
    told = list(happenings(scene(1, (1, 2), 7), scene(2, (2,), 5, "down")))

    assert told == [
        "broker 1 is down",
        "orders-0 is led by 2 in epoch 2",
        "in-sync set of orders-0: 1,2 -> 2",
        "1 cuts its log of orders-0 from 7 to 5",
    ]
    assert list(happenings(scene(1, (1, 2), 7), scene(1, (2, 1), 8))) == []
    assert Frame(0, 0, (), scene(1, (1,), 1)).scene.partition("payments-0") is None
