"""Fixtures for pytest, which loads them automatically if Tidelog is installed.

`tidelog_cluster` is a cluster for one test, with the arguments of the test's marker:

    @pytest.mark.tidelog(brokers=5, properties={"min.insync.replicas": "2"})

`tidelog_shared_cluster` is one cluster for the whole session. After each test, the plugin repairs
this cluster and deletes its topics. `tidelog_topic` is a new topic with a unique name. Its marker
sets the partitions and the configurations:

    @pytest.mark.tidelog_topic(partitions=3, retention_ms=60_000)

The report of a failed test shows the state of each node and the end of its log.
"""

import re
import secrets
from collections.abc import Generator, Iterator
from pathlib import Path
from typing import Any

import pytest

from tidelog.client.admin import RequestRefused
from tidelog.testing.arguments import MarkerArguments
from tidelog.testing.cluster import Cluster

OWN, SHARED, TOPIC = "tidelog_cluster", "tidelog_shared_cluster", "tidelog_topic"
SHOWN_LINES = 20
LONGEST_NAME = 100
"""The name of a topic contains at most this many characters of the test's name."""

CLUSTER_MARKER, TOPIC_MARKER = "tidelog", "tidelog_topic"
TAKES = {
    CLUSTER_MARKER: MarkerArguments.of(Cluster),
    TOPIC_MARKER: MarkerArguments.of(Cluster.create_topic, without=["self", "name"]),
}
MEANING = {
    CLUSTER_MARKER: "the cluster of the fixture tidelog_cluster; see tidelog.testing.Cluster",
    TOPIC_MARKER: "the topic of the fixture tidelog_topic; see Cluster.create_topic",
}

_cluster_of_test = pytest.StashKey[Cluster]()
_shared_cluster = pytest.StashKey[Cluster]()


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.getgroup("tidelog").addoption(
        "--tidelog-brokers",
        type=int,
        default=3,
        metavar="N",
        help="the number of brokers of a cluster whose test has no marker",
    )


def pytest_configure(config: pytest.Config) -> None:
    brokers = config.getoption("--tidelog-brokers")
    if brokers < 1:
        raise pytest.UsageError(f"--tidelog-brokers: a cluster has at least one, not {brokers}")
    for marker, takes in TAKES.items():
        configs = ", **configs" if takes.has_configs else ""
        taken = f"{marker}({', '.join(takes.names)}{configs})"
        config.addinivalue_line("markers", f"{taken}: {MEANING[marker]}")


@pytest.fixture
def tidelog_cluster(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Cluster]:
    """A running cluster for this test."""
    wanted = {
        "brokers": request.config.getoption("--tidelog-brokers"),
        "directory": tmp_path / "tidelog",
        **_marked(request, CLUSTER_MARKER),
    }
    try:
        cluster = Cluster(**wanted)
    except ValueError as error:
        pytest.fail(f"@pytest.mark.{CLUSTER_MARKER}: {error}", pytrace=False)
    request.node.stash[_cluster_of_test] = cluster
    with cluster:
        yield cluster


@pytest.fixture(scope="session")
def tidelog_shared_cluster(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Cluster]:
    """A running cluster for all tests. Before each test, it is repaired and has no topics."""
    brokers = request.config.getoption("--tidelog-brokers")
    cluster = Cluster(brokers, directory=tmp_path_factory.mktemp("tidelog"))
    request.session.stash[_shared_cluster] = cluster
    with cluster:
        yield cluster


@pytest.fixture
def tidelog_topic(request: pytest.FixtureRequest) -> str:
    """The name of a new topic, in the test's own cluster if it has one, or in the shared one."""
    wanted = _marked(request, TOPIC_MARKER)
    cluster: Cluster = request.getfixturevalue(OWN if OWN in request.fixturenames else SHARED)
    test = re.sub(r"[^A-Za-z0-9-]+", "-", request.node.name)[:LONGEST_NAME].strip("-")
    name = f"{test}-{secrets.token_hex(4)}"
    try:
        cluster.create_topic(name, **wanted)
    except (ValueError, RequestRefused) as error:
        pytest.fail(f"@pytest.mark.{TOPIC_MARKER}: {error}", pytrace=False)
    return name


def _marked(request: pytest.FixtureRequest, marker: str) -> dict[str, Any]:
    """The arguments of the test's markers with this name. The closest marker takes precedence."""
    wanted: dict[str, Any] = {}
    for one in reversed(list(request.node.iter_markers(marker))):
        try:
            wanted |= TAKES[marker].bind(one.args, one.kwargs)
        except ValueError as error:
            pytest.fail(f"@pytest.mark.{marker}: {error}", pytrace=False)
    return wanted


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Add the state and the log of each node to the report of a failed test."""
    report = yield
    if report.failed:
        for cluster in _clusters(item):
            for id, node in cluster.nodes.items():
                log = "\n".join(node.log_text().splitlines()[-SHOWN_LINES:])
                report.sections.append((f"tidelog node {id}: {node.state}", log))
            report.sections.append(("tidelog files", str(cluster.directory)))
    return report


@pytest.hookimpl(wrapper=True)
def pytest_runtest_teardown(item: pytest.Item) -> Generator[None, object, object]:
    """After the fixtures of a test have ended, repair the shared cluster and delete its topics.

    After the last test of the session, the shared cluster has ended and needs no repair.
    """
    try:
        return (yield)
    finally:
        shared = item.session.stash.get(_shared_cluster, None)
        if shared is not None and not shared.has_ended and _uses_shared(item):
            shared.repair()
            shared.delete_topics()


def _clusters(item: pytest.Item) -> Iterator[Cluster]:
    own = item.stash.get(_cluster_of_test, None)
    if own is not None:
        yield own
    shared = item.session.stash.get(_shared_cluster, None)
    if shared is not None and _uses_shared(item):
        yield shared


def _uses_shared(item: pytest.Item) -> bool:
    names = list(getattr(item, "fixturenames", ()))
    return SHARED in names or (TOPIC in names and OWN not in names)
