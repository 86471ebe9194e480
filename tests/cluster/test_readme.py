"""Every command in the README is run, in order, and prints the output that the README shows.

The Chinese README has the same commands, programs and output, so one run covers both.
test_install.py runs `pip install .`.
"""

import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest
from tests.cluster.documented_commands import ROOT, Newcomer, steps

FENCE = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


class Block(NamedTuple):
    language: str
    text: str


def blocks(page: str) -> list[Block]:
    """The blocks to run, without "text" blocks, whose output differs in each run."""
    found = [Block(*one) for one in FENCE.findall((ROOT / page).read_text(encoding="utf-8"))]
    return [block for block in found if block.language != "text"]


@pytest.fixture
def newcomer(tmp_path: Path) -> Iterator[Newcomer]:
    someone = Newcomer(tmp_path)
    yield someone
    if someone.cluster is not None and someone.cluster.poll() is None:
        someone.presses_ctrl_c()


def test_everything_in_the_readme_works_as_shown(newcomer: Newcomer) -> None:
    for block in blocks("README.md"):
        if block.language == "console":
            for step in steps(block.text):
                newcomer.does(step)
            continue
        assert block.language == "python"
        if "def test_" in block.text:
            (newcomer.directory / "test_readme.py").write_text(block.text)
            options = "-p tidelog.testing.plugin -p no:cacheprovider -q"
            printed = newcomer.runs(f"{sys.executable} -m pytest {options} test_readme.py")
            assert printed[-1].startswith("1 passed")
        else:
            script = newcomer.directory / "readme.py"
            script.write_text(newcomer.here(block.text))
            (printed_line,) = newcomer.runs(f"{sys.executable} {script}")
            assert f"# {printed_line}\n" in block.text
    assert newcomer.presses_ctrl_c() == 0


def test_the_chinese_readme_has_the_same_commands_programs_and_output() -> None:
    assert blocks("README.zh-CN.md") == blocks("README.md")
