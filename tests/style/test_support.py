"""Test support is in separate modules, whose names describe what they provide."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

TESTS = Path(__file__).parents[1]
MODULES = sorted(TESTS.rglob("*.py"))
IMPORTS_A_TEST_MODULE = re.compile(r"\b(?:from|import)\s+tests(?:\.\w+)*\.test_\w+")
VAGUE = {"desk", "told", "trouble", "troubles", "helper", "helpers", "utils"}


def imported(tree: ast.Module) -> Iterator[str]:
    """Every module that the code imports, and every name that it imports from a package."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            module = node.module or ""
            yield from (f"{module}.{alias.name}" for alias in node.names)
            yield module


def bound(tree: ast.Module) -> Iterator[str]:
    """Every name that the code defines: classes, functions, arguments and variables."""
    for node in ast.walk(tree):
        if isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            yield node.name
        elif isinstance(node, ast.arg):
            yield node.arg
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node.id
        elif isinstance(node, ast.Attribute) and ast.unparse(node.value) == "self":
            yield node.attr


def words(name: str) -> set[str]:
    return set(re.sub(r"(?<=[a-z])(?=[A-Z])", "_", name).lower().split("_"))


def short(path: Path) -> str:
    return str(path.relative_to(TESTS))


@pytest.mark.parametrize("path", MODULES, ids=short)
def test_no_test_module_is_imported_by(path: Path) -> None:
    text = path.read_text()
    tree = ast.parse(text)
    from_tests = [name for name in imported(tree) if name.startswith("tests.")]
    assert [name for name in from_tests if re.search(r"\.test_\w+$", name)] == []
    assert IMPORTS_A_TEST_MODULE.search(text) is None, "a program in a string imports a test module"


@pytest.mark.parametrize("path", MODULES, ids=short)
def test_no_vague_name_is_in(path: Path) -> None:
    names = {name for name in bound(ast.parse(path.read_text())) if not name.startswith("test_")}
    assert sorted(name for name in {path.stem, *names} if words(name) & VAGUE) == []
