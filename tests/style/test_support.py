"""Test support has modules of its own, under names that say what they give."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

TESTS = Path(__file__).parents[1]
MODULES = sorted(TESTS.rglob("*.py"))
IMPORTS_A_TEST_MODULE = re.compile(r"\b(?:from|import)\s+tests(?:\.\w+)*\.test_\w+")


def imported(tree: ast.Module) -> Iterator[str]:
    """Every module that the code imports, and every name that it imports from a package."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            module = node.module or ""
            yield from (f"{module}.{alias.name}" for alias in node.names)
            yield module


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(TESTS)))
def test_no_test_module_is_imported_by(path: Path) -> None:
    text = path.read_text()
    tree = ast.parse(text)
    from_tests = [name for name in imported(tree) if name.startswith("tests.")]
    assert [name for name in from_tests if re.search(r"\.test_\w+$", name)] == []
    assert IMPORTS_A_TEST_MODULE.search(text) is None, "a program in a string imports a test module"
