"""docs/faults.md has a row for every fault, and all tests and stories that it names exist."""

import ast
import re
from functools import cache
from pathlib import Path

import pytest

from tidelog.sim.mutants import MUTANTS

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "faults.md").read_text()
FAULTS = [f"F{number:02}" for number in (*range(1, 88), 89, 91, *range(93, 100))]
"""The other numbers up to F92 are faults of features that do not exist yet."""
WITH_MUTANTS = [
    f"F{number:02}"
    for number in (
        1,
        2,
        3,
        4,
        12,
        13,
        14,
        15,
        16,
        17,
        18,
        29,
        36,
        46,
        54,
        58,
        66,
        67,
        68,
        72,
        73,
        74,
        78,
        79,
        80,
        82,
        83,
        84,
    )
]


def row_of(fault: str) -> str:
    [row] = re.findall(rf"^\| {fault} \|.*$", PAGE, re.MULTILINE)
    return str(row)


@cache
def functions_in(path: Path) -> set[str]:
    nodes = ast.walk(ast.parse(path.read_text()))
    return {node.name for node in nodes if isinstance(node, ast.FunctionDef)}


def check_exists(named: str) -> None:
    """Assert that the name is a test function, a scenario or a story that the suite runs."""
    file, _, test = named.partition("::")
    path = ROOT / file
    assert path.is_file(), f"{file} is not there"
    if test:
        assert path.name.startswith("test_"), f"{file} is not collected"
        assert test.startswith("test_"), f"{test} is not collected"
        assert test in functions_in(path), f"{file} has no {test}"
    else:
        assert path.suffix in (".txt", ".story"), named


@pytest.mark.parametrize("fault", FAULTS)
def test_fault_has_a_row_and_its_tests_exist(fault: str) -> None:
    _, number, meaning, shown_by, _ = row_of(fault).split("|")
    named = re.findall(r"`([^`]+)`", shown_by)

    assert number.strip() == fault
    assert meaning.strip().endswith(".")
    assert named, f"{fault} has no test"
    for one in named:
        check_exists(one)
    assert any(_names(one, fault) for one in named), f"no test of {fault} names it"


def _names(named: str, fault: str) -> bool:
    """Whether the name of the test, or its file, contains the fault's number."""
    if re.search(rf"(^|[_/]){fault.lower()}_", named):
        return True
    return fault in (ROOT / named.partition("::")[0]).read_text()


@pytest.mark.parametrize("mutant", MUTANTS)
def test_mutant_has_a_row_that_is_true(mutant: str) -> None:
    known = MUTANTS[mutant]
    [row] = re.findall(rf"^\| `{mutant}` \|.*$", PAGE, re.MULTILINE)
    _, _, faults, wrong, story, catch, _ = (cell.strip() for cell in row.split("|"))

    assert faults == (", ".join(known.faults) or "-")
    assert wrong == known.wrong
    assert story == f"`{known.story}`"
    assert re.match(r"\d+|none of \d+", catch)
    assert (ROOT / "src/tidelog/sim/stories" / f"{known.story}.story").is_file()


@pytest.mark.parametrize("fault", WITH_MUTANTS)
def test_fault_that_needs_a_mutant_has_one(fault: str) -> None:
    assert any(fault in mutant.faults for mutant in MUTANTS.values())
