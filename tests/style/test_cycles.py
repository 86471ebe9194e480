"""No nested function calls itself, because such a function is part of a reference cycle (F63).

All objects that such a function refers to, for example a request, stay in memory until the garbage
collector finds the cycle. A bound method can do the same work without a cycle.
"""

import ast
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[2] / "src" / "tidelog"
EXAMPLE = """
def work():
    def go_on():
        later(go_on)
    go_on()
"""


def recursive_closures(node: ast.AST, *, is_inside: bool = False) -> Iterator[ast.FunctionDef]:
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.ClassDef):
            yield from recursive_closures(child)
            continue
        if isinstance(child, ast.FunctionDef):
            if is_inside and any(
                isinstance(name, ast.Name) and name.id == child.name for name in ast.walk(child)
            ):
                yield child
            yield from recursive_closures(child, is_inside=True)
            continue
        yield from recursive_closures(child, is_inside=is_inside)


def test_an_example_is_found() -> None:
    assert [found.name for found in recursive_closures(ast.parse(EXAMPLE))] == ["go_on"]


def test_no_closure_refers_to_itself() -> None:
    found = [
        f"{path.relative_to(ROOT)}:{closure.lineno} {closure.name}"
        for path in sorted(ROOT.rglob("*.py"))
        for closure in recursive_closures(ast.parse(path.read_text()))
    ]
    assert found == []
