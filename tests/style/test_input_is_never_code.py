"""Nothing in the source can run input as code: no pickle, no eval, no shell."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

SOURCE = Path(__file__).parents[2] / "src" / "tidelog"
MODULES = {"pickle", "cloudpickle", "dill", "marshal", "shelve", "code", "codeop", "pty"}
BUILTINS = {"eval", "exec", "compile", "__import__"}
CALLS = {"os.system", "os.popen", "subprocess.getoutput", "subprocess.getstatusoutput"}


def dangers(source: str) -> Iterator[str]:
    for node in ast.walk(ast.parse(source)):
        match node:
            case ast.Import():
                names = {alias.name.partition(".")[0] for alias in node.names}
                yield from (f"import {name}" for name in sorted(names & MODULES))
            case ast.ImportFrom(module=str(module)) if module.partition(".")[0] in MODULES:
                yield f"from {module}"
            case ast.Call(func=ast.Name(id=name)) if name in BUILTINS:
                yield f"{name}()"
            case ast.Call():
                called = ast.unparse(node.func)
                if called in CALLS:
                    yield f"{called}()"
                if any(one.arg == "shell" for one in node.keywords):
                    yield f"{called}(shell=...)"


@pytest.mark.parametrize(
    "path", sorted(SOURCE.rglob("*.py")), ids=lambda path: str(path.relative_to(SOURCE))
)
def test_no_input_can_become_code(path: Path) -> None:
    assert list(dangers(path.read_text())) == []


@pytest.mark.parametrize(
    "source",
    [
        "import pickle",
        "from pickle import loads",
        "import marshal as m",
        "eval(text)",
        "exec(text)",
        "subprocess.run(text, shell=True)",
        "os.system(text)",
    ],
)
def test_each_danger_is_found(source: str) -> None:
    assert len(list(dangers(source))) == 1
