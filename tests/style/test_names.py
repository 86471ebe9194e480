"""Every public class name is defined once in the source, so that a search finds one class."""

import ast
from collections import defaultdict
from pathlib import Path

ROOT = Path(__file__).parents[2] / "src" / "tidelog"

SHARED: dict[str, str] = {}
"""Names that several modules may use, each with the reason."""


def test_each_public_class_name_occurs_once() -> None:
    found: dict[str, list[str]] = defaultdict(list)
    for path in sorted(ROOT.rglob("*.py")):
        for node in ast.parse(path.read_text()).body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                found[node.name].append(str(path.relative_to(ROOT)))
    repeated = {name: paths for name, paths in found.items() if len(paths) > 1}
    assert set(repeated) == set(SHARED), repeated
