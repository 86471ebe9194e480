"""docs/walks.md and docs/finding-your-way.md name files and functions that exist."""

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
HOP = re.compile(r"`([\w/]+\.py)(?::([\w.]+))?`")
WALKS = HOP.findall((ROOT / "docs" / "walks.md").read_text())
ANSWER = re.compile(r"^\| (\d+) \| [^|]+\? \| `([^`]+)` \|$", re.MULTILINE)
ANSWERS = ANSWER.findall((ROOT / "docs" / "finding-your-way.md").read_text())
DEFINITIONS = (ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)


def source(path: str) -> Path:
    """The file that a path names, relative to the package or, for the pipeline, to src/."""
    if path.startswith("tests/"):
        return ROOT / path
    package = "" if path.startswith("tidelog_pipelines/") else "tidelog"
    return ROOT / "src" / package / path


def has_definition(body: list[ast.stmt], names: list[str]) -> bool:
    """Whether the body defines a function, a class or a method (`Class.method`) of this name."""
    return any(
        isinstance(node, DEFINITIONS)
        and node.name == names[0]
        and (len(names) == 1 or has_definition(node.body, names[1:]))
        for node in body
    )


def test_there_are_five_walks() -> None:
    assert len(re.findall(r"^## \d\. ", (ROOT / "docs" / "walks.md").read_text(), re.M)) == 5
    assert len(WALKS) > 50


@pytest.mark.parametrize(("path", "name"), WALKS)
def test_hop_exists(path: str, name: str) -> None:
    assert source(path).is_file(), f"{path} does not exist"
    if name:
        body = ast.parse(source(path).read_text()).body
        assert has_definition(body, name.split(".")), f"{path} does not define {name}"


def test_there_are_thirty_questions() -> None:
    assert [int(number) for number, _ in ANSWERS] == list(range(1, 31))


@pytest.mark.parametrize(("number", "path"), ANSWERS)
def test_answer_exists(number: str, path: str) -> None:
    assert source(path).is_file(), f"question {number}: {path} does not exist"
