"""Shells complete the names of commands, their options and the values of options."""

import os
import subprocess
import sys
from pathlib import Path

import pytest


@pytest.fixture
def environment(tmp_path: Path) -> dict[str, str]:
    """An environment with the command `tidelog` on the PATH."""
    program = tmp_path / "tidelog"
    program.write_text(f'#!/bin/sh\nexec {sys.executable} -m tidelog.cli.main "$@"\n')
    program.chmod(0o755)
    return {**os.environ, "PATH": f"{tmp_path}:{os.environ['PATH']}"}


def run(environment: dict[str, str], *command: str) -> str:
    return subprocess.run(
        command, env=environment, check=True, capture_output=True, text=True
    ).stdout


def test_bash_completes(environment: dict[str, str]) -> None:
    def completed(line: str) -> list[str]:
        script = (
            'eval "$(tidelog completion bash)"\n'
            f"COMP_WORDS=({line}); COMP_CWORD=$((${{#COMP_WORDS[@]}} - 1))\n"
            '_tidelog_completion tidelog; printf "%s\\n" "${COMPREPLY[@]}"'
        )
        return run(environment, "bash", "--norc", "-c", script).split()

    assert completed("tidelog gr") == ["groups"]
    assert completed("tidelog groups --to-e") == ["--to-earliest"]
    assert completed("tidelog elect --election-type un") == ["unclean"]
    assert completed("tidelog features up") == ["upgrade"]


def test_zsh_gets_a_script_and_summaries(environment: dict[str, str]) -> None:
    assert run(environment, "tidelog", "completion", "zsh").startswith("#compdef tidelog")
    asked = {"COMP_WORDS": "tidelog gro", "COMP_CWORD": "1", "_TIDELOG_COMPLETE": "zsh_complete"}
    kind, name, summary = run({**environment, **asked}, "tidelog").split("\n")[:3]
    assert (kind, name) == ("plain", "groups")
    assert summary.startswith("List and describe groups")


def test_no_command_is_imported_to_complete_its_name() -> None:
    script = (
        "import sys, click; from tidelog.cli.commands import cli;"
        "found = [one.value for one in cli.shell_complete(click.Context(cli), 'to')];"
        "assert found == ['topics'], found;"
        "sys.exit(any(m.startswith(('tidelog.cli.kafka_tools', 'kio')) for m in sys.modules))"
    )
    assert subprocess.run([sys.executable, "-c", script]).returncode == 0
