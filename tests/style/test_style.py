"""ruff, mypy and import-linter, run as tests."""

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
BIN = Path(sys.executable).parent

CHECKS = {
    "ruff finds nothing": ["ruff", "check", "--quiet"],
    "ruff would format nothing": ["ruff", "format", "--check", "--quiet"],
    "mypy --strict finds nothing": ["mypy"],
    "imports point down only": ["lint-imports"],
}


@pytest.mark.parametrize("check", CHECKS)
def test_check(check: str) -> None:
    program, *arguments = CHECKS[check]
    done = subprocess.run(
        [BIN / program, *arguments], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, f"{check}: no\n{done.stdout}\n{done.stderr}"
