"""The simulator accesses nodes through `node/inspection.py`, not through private attributes."""

import ast
from collections.abc import Iterator
from pathlib import Path

SIMULATOR = Path(__file__).parents[2] / "src" / "tidelog" / "sim"
EXCEPTIONS = {
    "mutants/controlling.py": "a mutant wraps the private rule that it replaces",
    "mutants/membership.py": "a mutant wraps the private rule that it replaces",
    "mutants/truncation.py": "a mutant wraps the private rule that it replaces",
}
NAMED_TUPLE = {"_asdict", "_fields", "_make", "_replace"}
"""Public attributes of a NamedTuple, despite their underscore."""


def private_reads(tree: ast.AST) -> Iterator[str]:
    for node in ast.walk(tree):
        if not isinstance(node, ast.Attribute) or not node.attr.startswith("_"):
            continue
        is_own = isinstance(node.value, ast.Name) and node.value.id in ("self", "cls")
        is_public = node.attr in NAMED_TUPLE or node.attr.startswith("__")
        if not is_own and not is_public:
            yield f"{node.lineno}: {ast.unparse(node)}"


def test_no_module_reads_a_private_attribute_of_another_object() -> None:
    found: dict[str, list[str]] = {}
    for path in sorted(SIMULATOR.rglob("*.py")):
        if reads := list(private_reads(ast.parse(path.read_text()))):
            found[path.relative_to(SIMULATOR).as_posix()] = reads
    unexpected = {path: reads for path, reads in found.items() if path not in EXCEPTIONS}
    assert not unexpected
    assert found.keys() == EXCEPTIONS.keys(), "an exception is no longer needed"
