"""`./tidelog` on machines where something is missing, and its first use in a fresh checkout."""

import os
import re
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest

from tidelog import __version__

ROOT = Path(__file__).parents[2]
REAL_PYTHON = os.path.realpath(sys.executable)


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """The files of a fresh clone that the launcher reads, without an environment."""
    for name in ("tidelog", "tools", "locks", "src"):
        source, target = ROOT / name, tmp_path / "checkout" / name
        target.parent.mkdir(exist_ok=True)
        if source.is_dir():
            shutil.copytree(source, target, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            shutil.copy2(source, target)
    return tmp_path / "checkout"


def machine(tmp_path: Path, python: str, **variables: str) -> dict[str, str]:
    """The environment variables of a machine on which `python3` is this program."""
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
    """pip's settings from the environment, such as the address of a package index."""
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


FAKE = """#!/bin/sh
case "$1" in
*/fastest_python.py) {answer} ;;
*) exec {python} "$@" ;;
esac
"""
"""A wrapper for Python that runs `answer` in place of fastest_python.py."""


def machine_with_another(tmp_path: Path, answer: str, **variables: str) -> dict[str, str]:
    """A machine with a second Python, which runs `answer` instead of fastest_python.py."""
    env = machine(tmp_path, REAL_PYTHON, **variables)
    other = tmp_path / "other" / "python3"
    other.parent.mkdir()
    other.write_text(FAKE.format(answer=answer.replace("$0", str(other)), python=REAL_PYTHON))
    other.chmod(0o755)
    nowhere = {"PIP_INDEX_URL": "http://127.0.0.1:1/simple", "PIP_RETRIES": "0"}
    return {**env, **nowhere, "PATH": f"{env['PATH']}:{other.parent}"}


def said_by(checkout: Path, env: dict[str, str]) -> list[str]:
    return tidelog(checkout, env).communicate()[1].splitlines()


def home_of(checkout: Path) -> str:
    """The directory of the Python with which the launcher made the environment."""
    lines = (checkout / ".venv" / "pyvenv.cfg").read_text().splitlines()
    return next(line.split(" = ")[1] for line in lines if line.startswith("home"))


ABI = str(sysconfig.get_config_var("SOABI"))
FAST = f"printf '{ABI}\\t0.000001\\t3.11.99\\t%s\\n' $0"


def test_a_much_faster_build_of_the_same_python_is_taken(checkout: Path, tmp_path: Path) -> None:
    first, second, *_ = said_by(checkout, machine_with_another(tmp_path, FAST))

    assert re.match(
        rf"tidelog: uses {tmp_path}/other/python3 \(3\.11\.99\), \d+\.\d times as fast as "
        rf"{REAL_PYTHON} \(3\.\d+\.\d+\); TIDELOG_PYTHON names another\.",
        first,
    )
    assert second.startswith("tidelog: making the environment in")
    assert (checkout / ".venv" / "pyvenv.cfg").exists()


def test_the_python_that_is_named_is_taken(checkout: Path, tmp_path: Path) -> None:
    named = str(tmp_path / "bin" / "python3")
    env = machine_with_another(tmp_path, FAST, TIDELOG_PYTHON=named)

    first, *_ = said_by(checkout, env)

    assert first.startswith("tidelog: making the environment in")
    assert home_of(checkout) == os.path.dirname(REAL_PYTHON)


@pytest.mark.parametrize(
    "answer",
    [
        pytest.param("echo nonsense", id="nonsense"),
        pytest.param("exit 1", id="cannot make an environment"),
        pytest.param(f"exec {shutil.which('sleep')} 600", id="hangs"),
        pytest.param(FAST.replace(ABI, "pypy311-pp73"), id="another implementation"),
        pytest.param(FAST.replace("$0", "/nowhere/python3"), id="names one that is not there"),
    ],
)
def test_a_python_that_cannot_be_used_is_passed_over(
    checkout: Path, tmp_path: Path, answer: str
) -> None:
    first, *_ = said_by(checkout, machine_with_another(tmp_path, answer))

    assert first.startswith("tidelog: making the environment in")


def test_a_path_that_cannot_be_searched_is_no_hindrance(checkout: Path, tmp_path: Path) -> None:
    env = machine_with_another(tmp_path, "exit 1", PYTHONSAFEPATH="1")
    too_long = "/" + "x" * 300
    env["PATH"] += f":{too_long}::relative"

    first, *_ = said_by(checkout, env)

    assert first.startswith("tidelog: making the environment in")
