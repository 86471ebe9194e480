"""Options of the whole suite, and the distribution of tests over several processes."""

import os
import shutil
import tempfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings

# Hypothesis has no deadlines here, because the machine may be busy.
settings.register_profile(
    "tidelog",
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
    database=None,
    print_blob=True,
)
settings.load_profile("tidelog")


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("tidelog")
    group.addoption(
        "--system",
        choices=("tidelog", "kafka"),
        default="tidelog",
        help="the broker under the tests with real clients; kafka shows that a test is right",
    )
    group.addoption(
        "--record-golden",
        action="store_true",
        help="write what --system kafka answers into tests/clients/golden",
    )
    group.addoption(
        "--kills", type=int, default=10, help="how often a broker is killed in the kill -9 tests"
    )
    group.addoption(
        "--controller-kills",
        type=int,
        default=4,
        help="how often the active controller is killed under a stream of topic creations",
    )
    group.addoption(
        "--chaos-minutes",
        type=float,
        default=0.5,
        help="how long faults go on in the chaos test; each kind comes at least once",
    )
    group.addoption(
        "--chaos-seed", type=int, default=None, help="what the chaos test draws its faults from"
    )
    group.addoption(
        "--rounds",
        type=int,
        default=None,
        help="how often a node's files are damaged; unless given, a few times with fixed seeds",
    )
    group.addoption(
        "--seed", type=int, default=None, help="of the first round of damage; the next has the next"
    )
    group.addoption(
        "--damage", action="append", default=None, help="damage in this way only (may be repeated)"
    )
    group.addoption(
        "--ingest-records", type=int, default=20_000, help="how many records the pipeline ingests"
    )
    group.addoption(
        "--poison-records",
        type=int,
        default=2_000,
        help="how many records there are, the bad ones among them",
    )
    group.addoption(
        "--poison-each",
        action="store_true",
        help="write each kind of bad record to a topic of its own, with as many records",
    )
    group.addoption(
        "--poison-kind",
        action="append",
        default=None,
        help="write only this kind of bad record; may be repeated; poison_kinds.py has the names",
    )
    group.addoption(
        "--schema-registry",
        metavar="URL",
        default="",
        help="a real schema registry for the test with the official serializers",
    )
    group.addoption(
        "--driver-kills", type=int, default=2, help="how often Spark's driver is killed meanwhile"
    )
    group.addoption(
        "--broker-kills", type=int, default=3, help="how often a broker is killed meanwhile"
    )
    group.addoption(
        "--rewrite",
        action="store_true",
        help="record the answers in the transcripts of tests/scenarios anew",
    )
    group.addoption(
        "--seeds", type=int, default=2, help="with how many seeds each simulated test is run"
    )


def pytest_configure(config: pytest.Config) -> None:
    """Let each `up` of this run register in its own state directory, not in the user's."""
    state = tempfile.mkdtemp(prefix="tidelog-state-")
    os.environ["XDG_STATE_HOME"] = state
    config.add_cleanup(lambda: shutil.rmtree(state, ignore_errors=True))


LONGEST_FIRST = ("pipelines", "cluster", "clients", "sim", "unit")
"""Long tests start first, and short ones fill the remaining time."""


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """With --dist loadscope, `tests.sharing` decides which tests a process runs together."""
    if config.getoption("dist") != "loadscope":
        return None
    from tests.sharing import Sharing

    return Sharing(config, log)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Sort the tests if several processes run them, because all processes need the same order."""
    if hasattr(config, "workerinput"):
        items.sort(key=_place)


def _place(item: pytest.Item) -> int:
    kind = item.path.relative_to(Path(__file__).parent).parts[0]
    return LONGEST_FIRST.index(kind) if kind in LONGEST_FIRST else len(LONGEST_FIRST)
