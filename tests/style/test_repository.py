"""Rules about the repository that no linter checks."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
LONGEST_FILE = 400
LONGEST_FUNCTION = 60

NOT_OURS = {"__pycache__", "dist", "tidelog-data", "uv.lock"}
"""Names that may exist in a checkout without being part of the repository, besides dot files."""


def files(directory: Path) -> Iterator[Path]:
    for path in sorted(directory.iterdir()):
        if path.name in NOT_OURS or (path.name.startswith(".") and path.name != ".ci"):
            continue
        if path.is_dir():
            yield from files(path)
        else:
            yield path


FILES = list(files(ROOT))
SOURCES = [path for path in FILES if path.suffix == ".py" and ROOT / "src" in path.parents]

FOREIGN = re.compile(
    "|".join(
        (
            r"(?<![\w.])/(?:work|root|home)/[a-z.]",  # a path on someone's machine
            r"https?://[^\s)>]*(?:pypi|pythonhosted|repo1?\.maven|npmjs)",  # a registry's address
        )
    )
)


def short(path: Path) -> str:
    return str(path.relative_to(ROOT))


@pytest.mark.parametrize("path", SOURCES, ids=short)
def test_source_is_short(path: Path) -> None:
    text = path.read_text()
    length = len(text.splitlines())
    assert length <= LONGEST_FILE, f"{short(path)} has {length} lines"
    long_functions = [
        f"{node.name} ({lines} lines)"
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        and (lines := (node.end_lineno or 0) - node.lineno + 1) > LONGEST_FUNCTION
    ]
    assert not long_functions


def test_no_machine_path_and_no_registry_in_any_file() -> None:
    found = []
    for path in FILES:
        try:
            lines = path.read_text(encoding="utf-8").splitlines()
        except UnicodeDecodeError:
            continue
        found += [
            f"{short(path)}:{number}: {line.strip()[:100]}"
            for number, line in enumerate(lines, 1)
            if FOREIGN.search(line)
        ]
    assert not found, "\n".join(found)
