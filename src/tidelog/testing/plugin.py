"""Fixtures for pytest, found by itself where Tidelog is installed.

`tidelog_cluster` is a cluster of the test's own, made as its marker says:

    @pytest.mark.tidelog(brokers=5, properties={"min.insync.replicas": "2"})

`tidelog_shared_cluster` is one for the whole session, whole again after each test. When a test
fails, its report shows the state of each node and the end of its log.
"""

from collections.abc import Generator, Iterator
from inspect import signature
from pathlib import Path

import pytest

from tidelog.testing.cluster import Cluster

SHARED = "tidelog_shared_cluster"
SHOWN_LINES = 20

_cluster_of_test = pytest.StashKey[Cluster]()
_shared_cluster = pytest.StashKey[Cluster]()


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.getgroup("tidelog").addoption(
        "--tidelog-brokers",
        type=int,
        default=3,
        metavar="N",
        help="how many brokers a cluster has whose test does not say",
    )


def pytest_configure(config: pytest.Config) -> None:
    brokers = config.getoption("--tidelog-brokers")
    if brokers < 1:
        raise pytest.UsageError(f"--tidelog-brokers: a cluster has at least one, not {brokers}")
    config.addinivalue_line(
        "markers",
        "tidelog(brokers, properties, broker_properties, racks, network_faults, disk_bytes): "
        "what the cluster of the fixture tidelog_cluster is like; as for tidelog.testing.Cluster",
    )


@pytest.fixture
def tidelog_cluster(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Cluster]:
    """A running cluster of this test's own."""
    wanted = {
        "brokers": request.config.getoption("--tidelog-brokers"),
        "directory": tmp_path / "tidelog",
    }
    for marker in reversed(list(request.node.iter_markers("tidelog"))):
        wanted.update(signature(Cluster).bind_partial(*marker.args, **marker.kwargs).arguments)
    cluster = Cluster(**wanted)
    request.node.stash[_cluster_of_test] = cluster
    with cluster:
        yield cluster


@pytest.fixture(scope="session")
def tidelog_shared_cluster(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Cluster]:
    """A running cluster for all tests; after each, what it has broken is repaired."""
    brokers = request.config.getoption("--tidelog-brokers")
    cluster = Cluster(brokers, directory=tmp_path_factory.mktemp("tidelog"))
    request.session.stash[_shared_cluster] = cluster
    with cluster:
        yield cluster


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Say of a failed test how its clusters fare."""
    report = yield
    if report.failed:
        for cluster in _clusters(item):
            for id, node in cluster.nodes.items():
                said = "\n".join(node.log_text().splitlines()[-SHOWN_LINES:])
                report.sections.append((f"tidelog node {id}: {node.state}", said))
            report.sections.append(("tidelog files", str(cluster.directory)))
    return report


@pytest.hookimpl(wrapper=True)
def pytest_runtest_teardown(item: pytest.Item) -> Generator[None, object, object]:
    """Repair what the test has broken, when its own fixtures have ended and however they did.

    After the session's last test the shared cluster has ended, too, and nothing is to be repaired.
    """
    try:
        return (yield)
    finally:
        shared = item.session.stash.get(_shared_cluster, None)
        if shared is not None and not shared.has_ended and SHARED in _fixture_names(item):
            shared.repair()


def _clusters(item: pytest.Item) -> Iterator[Cluster]:
    own = item.stash.get(_cluster_of_test, None)
    if own is not None:
        yield own
    shared = item.session.stash.get(_shared_cluster, None)
    if shared is not None and SHARED in _fixture_names(item):
        yield shared


def _fixture_names(item: pytest.Item) -> list[str]:
    return list(getattr(item, "fixturenames", ()))
