"""The environment variable for the log level."""

import os
import subprocess
import sys

import pytest

from tidelog.runtime.logs import LEVEL_VARIABLE

SCRIPT = (
    "import logging; from tidelog.runtime.logs import log_to_stderr; log_to_stderr('node 1');"
    "logging.info('an info'); logging.warning('a warning')"
)


@pytest.mark.parametrize(("level", "lines"), [("", 2), ("INFO", 2), ("WARNING", 1), ("LOUD", 2)])
def test_lines_below_the_level_are_left_out(level: str, lines: int) -> None:
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT],
        env={**os.environ, LEVEL_VARIABLE: level},
        capture_output=True,
        text=True,
        check=True,
    )
    assert len(done.stderr.splitlines()) == lines
    assert done.stderr.endswith("WARNING node 1: a warning\n")
