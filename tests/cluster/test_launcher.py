"""`./tidelog` on machines that lack something, and its first use in a fresh checkout."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tidelog import __version__

ROOT = Path(__file__).parents[2]
REAL_PYTHON = os.path.realpath(sys.executable)


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """What a fresh clone has of what the launcher reads, without an environment."""
    for name in ("tidelog", "tools", "locks", "src"):
        source, target = ROOT / name, tmp_path / "checkout" / name
        target.parent.mkdir(exist_ok=True)
        if source.is_dir():
            shutil.copytree(source, target, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            shutil.copy2(source, target)
    return tmp_path / "checkout"


def machine(tmp_path: Path, python: str, **variables: str) -> dict[str, str]:
    """The environment of a user on whose machine `python3` is this program."""
    programs = tmp_path / "bin"
    programs.mkdir(exist_ok=True)
    for name in ("sh", "dirname", "readlink", "sha256sum"):
        path = shutil.which(name)
        assert path is not None
        (programs / name).symlink_to(path)
    if python.startswith("#!"):
        (programs / "python3").write_text(python)
        (programs / "python3").chmod(0o755)
    else:
        (programs / "python3").symlink_to(python)
    home = tmp_path / "home"
    home.mkdir(exist_ok=True)
    return {"PATH": str(programs), "HOME": str(home), **variables}


def pip_settings() -> dict[str, str]:
    """Where this machine's pip finds packages, if that is said in the environment."""
    return {name: value for name, value in os.environ.items() if name.startswith("PIP_")}


def tidelog(checkout: Path, env: dict[str, str]) -> "subprocess.Popen[str]":
    command = [checkout / "tidelog", "--version"]
    pipe = subprocess.PIPE
    return subprocess.Popen(command, env=env, stdout=pipe, stderr=pipe, text=True, cwd="/")


def test_an_old_python_is_refused_in_one_sentence(checkout: Path, tmp_path: Path) -> None:
    old = '#!/bin/sh\n[ "$1" = --version ] && echo "Python 3.9.2" || exit 1\n'
    process = tidelog(checkout, machine(tmp_path, old))
    out, err = process.communicate()
    assert (process.returncode, out) == (1, "")
    assert err.startswith("tidelog: Python 3.11 or later is needed and Python 3.9.2 was found;")
    assert err.count("\n") == 1


def test_a_missing_venv_module_is_named(checkout: Path, tmp_path: Path) -> None:
    without = tmp_path / "without"
    without.mkdir()
    (without / "sitecustomize.py").write_text("import sys; sys.modules['ensurepip'] = None\n")
    process = tidelog(checkout, machine(tmp_path, REAL_PYTHON, PYTHONPATH=str(without)))
    out, err = process.communicate()
    assert (process.returncode, out) == (1, "")
    assert "lacks its module ensurepip: install it (Debian, Ubuntu: apt install python3." in err
    assert err.count("\n") == 1


def test_an_unreachable_package_index_is_named(checkout: Path, tmp_path: Path) -> None:
    nowhere = {"PIP_INDEX_URL": "http://127.0.0.1:1/simple", "PIP_RETRIES": "1"}
    process = tidelog(checkout, machine(tmp_path, REAL_PYTHON, **nowhere))
    out, err = process.communicate()
    assert (process.returncode, out) == (1, "")
    *_, last = err.splitlines()
    assert last.startswith("tidelog: the Python package index cannot be reached")
    assert "Traceback" not in err
    assert not (checkout / ".venv" / "made-for-run").exists()


def test_two_first_uses_at_once_make_one_environment(checkout: Path, tmp_path: Path) -> None:
    env = machine(tmp_path, REAL_PYTHON, **pip_settings())
    both = [tidelog(checkout, env), tidelog(checkout, env)]
    said = [process.communicate() for process in both]
    assert [out for out, _ in said] == [f"tidelog {__version__}\n"] * 2, said
    assert sum("making the environment in" in err for _, err in said) == 1

    third = tidelog(checkout, env)
    assert third.communicate() == (f"tidelog {__version__}\n", "")


SLOW_CLOCK = """import os, time
del os.environ["PYTHONPATH"]
measured = time.perf_counter
time.perf_counter = lambda: 2 * measured()
"""


def a_slow_and_a_fast_python(tmp_path: Path, **variables: str) -> dict[str, str]:
    """First on the path a Python that seems to take twice the time, then the same as it is."""
    slow = tmp_path / "slow"
    slow.mkdir()
    (slow / "sitecustomize.py").write_text(SLOW_CLOCK)
    env = machine(tmp_path, f'#!/bin/sh\nPYTHONPATH={slow} exec {REAL_PYTHON} "$@"\n', **variables)
    fast = tmp_path / "fast"
    fast.mkdir()
    (fast / "python3").symlink_to(REAL_PYTHON)
    return {**env, "PATH": f"{env['PATH']}:{fast}", "PIP_INDEX_URL": "http://127.0.0.1:1/simple"}


def test_a_much_faster_build_of_the_same_python_is_taken(checkout: Path, tmp_path: Path) -> None:
    process = tidelog(checkout, a_slow_and_a_fast_python(tmp_path))
    first, second, *_ = process.communicate()[1].splitlines()
    assert re.match(rf"tidelog: uses {REAL_PYTHON}, \d\.\d times as fast as the first", first)
    assert second.startswith("tidelog: making the environment in")


def test_the_python_that_is_named_is_taken(checkout: Path, tmp_path: Path) -> None:
    named = str(tmp_path / "bin" / "python3")
    process = tidelog(checkout, a_slow_and_a_fast_python(tmp_path, TIDELOG_PYTHON=named))
    first, *_ = process.communicate()[1].splitlines()
    assert first.startswith("tidelog: making the environment in")
