"""The page that replays a story, opened in a real browser."""

import re
import shutil
import subprocess
from pathlib import Path

import pytest

from tidelog.sim.replay.page import first_write, page
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


def opened(browser: str, file: Path, moment: int | None = None) -> str:
    """The document after its script has run."""
    arguments = ["--headless", "--no-sandbox", "--disable-gpu", "--dump-dom"]
    address = file.as_uri() if moment is None else f"{file.as_uri()}#{moment}"
    done = subprocess.run(
        [browser, *arguments, address], capture_output=True, text=True, check=True
    )
    return re.sub(r"<script.*?</script>", "", done.stdout, flags=re.DOTALL)


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

    at_first = opened(browser, file)

    assert f"moment {first_write(run.frames) + 1} of {len(run.frames)}" in at_first
    assert 'class="rec ' in at_first, "it opens at the first write"


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
