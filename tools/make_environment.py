"""Makes the environment in .venv from a lock, with nothing but the standard library.

Run as `python3.x tools/make_environment.py run|spark|test`. Safe to run twice at once, to interrupt
and to run again: a file `made-for-*` appears last, and holds the checksum of the lock installed.
"""

import fcntl
import hashlib
import importlib.util
import os
import shutil
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tools"))  # which PYTHONSAFEPATH leaves out
from fastest_python import base_python, faster_than  # noqa: E402

VENV = ROOT / ".venv"
LOG = VENV / "setup.log"
SERVES = {"run": ["run"], "spark": ["run", "spark"], "test": ["run", "spark", "test"]}
"""What each lock makes ready: the tests' lock holds all that the command line and Spark need."""
BUILDS_PYSPARK = ("spark", "test")

NETWORK_TROUBLE = (
    "Failed to establish a new connection",
    "Temporary failure in name resolution",
    "Name or service not known",
    "Network is unreachable",
    "ConnectTimeoutError",
    "ReadTimeoutError",
    "ProxyError",
    "Connection refused",
)


class Refused(Exception):
    """Something on this machine is missing; the message is one sentence for the user."""


def say(message: str, end: str = "\n") -> None:
    print(message, end=end, file=sys.stderr, flush=True)


def checksum(lock: str) -> str:
    return hashlib.sha256((ROOT / "locks" / f"{lock}.txt").read_bytes()).hexdigest()


def is_made(lock: str) -> bool:
    try:
        return (VENV / f"made-for-{lock}").read_text().strip() == checksum(lock) and has_python()
    except FileNotFoundError:
        return False


def has_python() -> bool:
    """Whether .venv belongs to this Python version and still runs."""
    site_packages = VENV / "lib" / f"python{sys.version_info[0]}.{sys.version_info[1]}"
    return site_packages.is_dir() and os.access(VENV / "bin" / "python", os.X_OK)


def run(command: list[str]) -> bool:
    with LOG.open("a") as log:
        log.write(f"$ {' '.join(command)}\n")
        log.flush()
        status = subprocess.run(
            command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, check=False
        )
    return status.returncode == 0


def require_venv_module() -> None:
    missing = [name for name in ("venv", "ensurepip") if importlib.util.find_spec(name) is None]
    if missing:
        version = f"{sys.version_info[0]}.{sys.version_info[1]}"
        raise Refused(
            f"Python {version} ({sys.executable}) lacks its module {missing[0]}: install it "
            f"(Debian, Ubuntu: apt install python{version}-venv) and run this again."
        )


def make_venv() -> None:
    if VENV.exists() and not has_python():
        shutil.rmtree(VENV)
    VENV.mkdir(exist_ok=True)
    LOG.write_text("")
    if not run([base_python(), "-m", "venv", str(VENV)]):
        raise Refused(f"Python's venv module failed; what it said is in {LOG}.")


def install(lock: str) -> None:
    pip = [str(VENV / "bin" / "python"), "-m", "pip", "install", "--disable-pip-version-check"]
    # Wheels only: a source package would need a compiler, and could run anything.
    pip += ["--require-hashes", "--only-binary", ":all:", "--no-deps"]
    steps = [[*pip, *requirement(lock)]]
    if lock in BUILDS_PYSPARK:
        # The one exception is published as source only; building it copies files, with a locked
        # setuptools and nothing from outside.
        source = ["--no-binary", "pyspark", "--no-build-isolation", "--no-cache-dir"]
        steps = [[*pip, *requirement("build")], [*pip, *source, *requirement(lock)]]
    if not all(run(step) for step in steps):
        said = LOG.read_text()
        if any(trouble in said for trouble in NETWORK_TROUBLE):
            raise Refused(
                "the Python package index cannot be reached, and the first use needs it once; "
                f"check the network or pip's configuration (pip's words are in {LOG})."
            )
        raise Refused(f"pip could not install locks/{lock}.txt; what it said is in {LOG}.")


def requirement(lock: str) -> list[str]:
    return ["--requirement", str(ROOT / "locks" / f"{lock}.txt")]


def link_source() -> None:
    """Put src/ on the environment's path; relative, so that the checkout may be moved."""
    for site_packages in VENV.glob("lib/python*/site-packages"):
        (site_packages / "tidelog.pth").write_text("../../../../src\n")


def make(lock: str) -> None:
    require_venv_module()
    started = time.monotonic()
    where, version = os.path.relpath(VENV), sys.version.split()[0]
    spark = ", with Spark (some 500 MB)," if lock in BUILDS_PYSPARK else ""
    say(f"tidelog: making the environment{spark} in {where}, once (Python {version}) ...", end=" ")
    try:
        make_venv()
        install(lock)
        link_source()
        for served in SERVES[lock]:
            (VENV / f"made-for-{served}").write_text(checksum(served) + "\n")
    except BaseException:
        say("")
        raise
    say(f"done in {time.monotonic() - started:.0f} s")


def take_the_fastest(lock: str) -> None:
    """Go on with a faster build of this Python, unless the user has named one."""
    if os.environ.get("TIDELOG_PYTHON") or has_python():
        return
    found = faster_than(base_python())
    if found is None:
        return
    own, best = found
    say(
        f"tidelog: uses {best.program} ({best.version}), {own.seconds / best.seconds:.1f} times "
        f"as fast as {own.program} ({own.version}); TIDELOG_PYTHON names another."
    )
    with suppress(OSError):
        named = {**os.environ, "TIDELOG_PYTHON": best.program}
        os.execve(best.program, [best.program, __file__, lock], named)


def main(lock: str) -> int:
    try:
        take_the_fastest(lock)
        with (ROOT / ".venv.lock").open("w") as guard:
            try:
                fcntl.flock(guard, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                say("tidelog: another run is making the environment; waiting for it ...")
                fcntl.flock(guard, fcntl.LOCK_EX)
            if not is_made(lock):
                make(lock)
    except Refused as refusal:
        say(f"tidelog: {refusal}")
        return 1
    except OSError as error:
        say(f"tidelog: no environment can be made: {error.filename}: {error.strerror}.")
        return 1
    except KeyboardInterrupt:
        say("tidelog: interrupted; the next run starts over.")
        return 130
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
