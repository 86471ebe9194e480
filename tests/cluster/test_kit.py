"""The test kit: faults on a real cluster, the pytest plugin, the examples in docs/testing.md."""

import os
import re
import subprocess
import sys
import time
import tomllib
from importlib import import_module
from pathlib import Path

import pytest
from tests.clients.librdkafka import producer_of, send_values
from tests.clients.samples import numbered

from tidelog.network import sockets
from tidelog.testing import CLIENTS, Cluster, FaultRefused, NodeProcess, NodeStuck
from tidelog.testing.cluster import SLOW_MS

ROOT = Path(__file__).parents[2]
ENDLESS = 30.0
"""A limit in seconds, which is half of the time that a client waits for a silent node."""
EXAMPLES = re.findall(
    r"^## Example \d: ([^\n]+)\n\n```python\n(.*?)^```$",
    (ROOT / "docs/testing.md").read_text(),
    re.MULTILINE | re.DOTALL,
)


def pytest_run(directory: Path, source: str, *options: str) -> subprocess.CompletedProcess[str]:
    """Run a test file as a user's project does, with the plugin but without our pytest settings."""
    (directory / "pytest.ini").write_text("[pytest]\naddopts = --strict-markers\n")
    (directory / "test_it.py").write_text(source)
    # Use a separate directory, because pytest removes files of earlier runs, or warns about them.
    apart = f"--basetemp={directory}-temporary"
    command = [sys.executable, "-m", "pytest", "-p", "tidelog.testing.plugin", apart]
    return subprocess.run(
        [*command, *options, str(directory)],
        env={**os.environ, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"},
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.parametrize("source", [source for _, source in EXAMPLES], ids=[t for t, _ in EXAMPLES])
def test_example(source: str, tmp_path: Path) -> None:
    done = pytest_run(tmp_path, source)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "1 passed" in done.stdout


def test_there_are_four_examples() -> None:
    assert len(EXAMPLES) == 4


def test_the_entry_point_names_the_plugin() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    plugin = import_module(project["entry-points"]["pytest11"]["tidelog"])
    assert hasattr(plugin, "pytest_addoption")


NO_BROKERS = """
def test_it(tidelog_cluster):
    pass
"""


def test_an_option_for_no_brokers_is_refused(tmp_path: Path) -> None:
    done = pytest_run(tmp_path, NO_BROKERS, "--tidelog-brokers", "0")
    assert done.returncode == pytest.ExitCode.USAGE_ERROR, done.stdout
    assert done.stderr.strip() == "ERROR: --tidelog-brokers: a cluster has at least one, not 0"


BROKEN = """
import pytest

def test_shared_is_broken(tidelog_shared_cluster):
    assert len(tidelog_shared_cluster.nodes) == 2
    tidelog_shared_cluster.kill(2)

def test_shared_is_whole_again(tidelog_shared_cluster):
    assert tidelog_shared_cluster.running == [1, 2]

@pytest.mark.tidelog(1, properties={"num.partitions": "7"})
def test_own(tidelog_cluster):
    tidelog_cluster.create_topic("t")
    assert len(tidelog_cluster.topics()["t"]) == 7
    tidelog_cluster.kill(1)
    assert False, "on purpose"
"""


def test_the_report_of_a_failed_test_shows_every_node_and_shared_clusters_are_repaired(
    tmp_path: Path,
) -> None:
    done = pytest_run(tmp_path, BROKEN, "--tidelog-brokers", "2")
    assert "1 failed, 2 passed" in done.stdout, done.stdout + done.stderr
    assert "- tidelog node 1: ended with status -9 -" in done.stdout
    assert "INFO node 1: ready" in done.stdout
    assert "- tidelog files -" in done.stdout
    assert "tidelog node 2" not in done.stdout


TOPICS = """
import pytest

NAMES = []

def test_shared(tidelog_topic, tidelog_shared_cluster):
    NAMES.append(tidelog_topic)
    [(name, partitions)] = tidelog_shared_cluster.topics().items()
    assert (name, len(partitions), len(partitions[0].replica_nodes)) == (tidelog_topic, 1, 2)
    tidelog_shared_cluster.create_topic("left-behind")

@pytest.mark.tidelog_topic(3, replication_factor=1, min_insync_replicas=1)
@pytest.mark.parametrize("case", ["a b", "ü/x"])
def test_marked(tidelog_topic, tidelog_shared_cluster, case):
    NAMES.append(tidelog_topic)
    [(name, partitions)] = tidelog_shared_cluster.topics().items()
    assert (name, len(partitions), len(partitions[0].replica_nodes)) == (tidelog_topic, 3, 1)

def test_all_differ(tidelog_topic):
    assert len({tidelog_topic, *NAMES}) == 4

@pytest.mark.tidelog(1)
def test_in_its_own_cluster(tidelog_topic, tidelog_cluster):
    assert list(tidelog_cluster.topics()) == [tidelog_topic]
    tidelog_cluster.delete_topics(tidelog_topic)
    assert tidelog_cluster.topics() == {}
"""


def test_each_test_has_a_topic_of_its_own_and_leaves_no_topic_behind(tmp_path: Path) -> None:
    done = pytest_run(tmp_path, TOPICS, "--tidelog-brokers", "2")
    assert "5 passed" in done.stdout, done.stdout + done.stderr


PARALLEL = """
import pytest

@pytest.mark.parametrize("number", range(4))
def test_it(number, tidelog_shared_cluster, tidelog_topic):
    assert list(tidelog_shared_cluster.topics()) == [tidelog_topic]
"""


def test_each_worker_of_xdist_has_a_shared_cluster_of_its_own(tmp_path: Path) -> None:
    options = ("-p", "xdist", "-n", "2", "--tidelog-brokers", "1")
    done = pytest_run(tmp_path, PARALLEL, *options)
    assert "4 passed" in done.stdout, done.stdout + done.stderr


WRONG = """
import pytest

@pytest.mark.tidelog(borkers=1)
def test_argument(tidelog_cluster):
    pass

@pytest.mark.tidelog(1, {"num.partitions": "7"})
def test_position(tidelog_cluster):
    pass

@pytest.mark.tidelog(1, properties={"num.partition": "7"})
def test_property(tidelog_cluster):
    pass

@pytest.mark.tidelog(1)
@pytest.mark.tidelog_topic(partition=3)
def test_topic(tidelog_cluster, tidelog_topic):
    pass

@pytest.mark.tidelog(1)
@pytest.mark.tidelog_topic(replication_factor=2)
def test_replicas(tidelog_cluster, tidelog_topic):
    pass
"""
CLUSTER_TAKES = (
    "brokers, directory, properties, broker_properties, racks, network_faults, disk_bytes"
)
ERRORS = (
    "@pytest.mark.tidelog: there is no argument 'borkers' (did you mean 'brokers'?); "
    f"there are {CLUSTER_TAKES}",
    f"@pytest.mark.tidelog: 2 positional arguments are too many; the arguments are {CLUSTER_TAKES}",
    "@pytest.mark.tidelog: properties: 'num.partition' is not a broker property "
    "(did you mean 'num.partitions'?)",
    "@pytest.mark.tidelog_topic: there is no argument 'partition' (did you mean 'partitions'?); "
    "there are partitions, replication_factor, assignment, timeout, "
    "and topic configurations with _ for .",
    "@pytest.mark.tidelog_topic: ",
)


def test_a_wrong_marker_fails_its_test_with_one_sentence(tmp_path: Path) -> None:
    done = pytest_run(tmp_path, WRONG)
    lines = done.stdout.splitlines()
    for error in ERRORS:
        assert any(line.startswith(error) for line in lines), (error, done.stdout)
    assert "5 errors" in lines[-1]
    assert "Traceback" not in done.stdout


ONLY_ONE = "def test_only_one(tidelog_shared_cluster): tidelog_shared_cluster.kill(1)"


def test_a_shared_cluster_is_not_started_again_when_its_session_ends(tmp_path: Path) -> None:
    base = tmp_path / "base"
    done = pytest_run(tmp_path, ONLY_ONE, "--tidelog-brokers", "2", "--basetemp", str(base))
    assert done.returncode == 0, done.stdout + done.stderr
    for log in ("1.log", "2.log"):
        assert (base / "tidelog0" / log).read_text().count(": ready\n") == 1


CANNOT_START = """
import os

os.environ["PYTHONHOME"] = os.devnull

def test_it(tidelog_shared_cluster):
    pass
"""


def test_a_shared_cluster_that_cannot_start_is_not_started_again(tmp_path: Path) -> None:
    done = pytest_run(tmp_path, CANNOT_START)
    assert "ERROR at setup of test_it" in done.stdout, done.stdout + done.stderr
    assert "ERROR at teardown of test_it" not in done.stdout
    assert "- tidelog node 1: " in done.stdout


BROKEN_TEARDOWN = """
import pytest

@pytest.fixture
def breaker(tidelog_shared_cluster):
    yield
    tidelog_shared_cluster.kill(1)
    assert False, "on purpose"

def test_breaks_at_its_end(breaker):
    pass

def test_shared_is_whole_again(tidelog_shared_cluster):
    assert tidelog_shared_cluster.running == [1, 2]
"""


def test_a_shared_cluster_is_repaired_after_a_teardown_that_failed(tmp_path: Path) -> None:
    done = pytest_run(tmp_path, BROKEN_TEARDOWN, "--tidelog-brokers", "2")
    assert "2 passed, 1 error" in done.stdout, done.stdout + done.stderr


def test_everything_that_nodes_say_to_each_other_passes_through_the_network(tmp_path: Path) -> None:
    with Cluster(directory=tmp_path) as cluster:
        cluster.create_topic("t", 3, 3)
        behind = {place.port for place in cluster.layout.places()}
        for node in cluster.nodes.values():
            assert not sockets.remote_ports(node.pid) & behind


def test_a_partition_is_between_its_sides_and_ends_when_it_is_healed(tmp_path: Path) -> None:
    with Cluster(directory=tmp_path) as cluster:
        cluster.create_topic("t", assignment=[[1, 2, 3]], min_insync_replicas=2)
        cluster.partition([1], [2, 3])
        # Clients reach both sides of the partition, and node 1 still has its old metadata.
        cluster.wait_for(
            lambda: True if cluster.topics(2)["t"][0].leader_id in (2, 3) else None, "a new leader"
        )
        assert cluster.topics(1)["t"][0].leader_id == 1
        # The kit sends requests to the majority first.
        assert cluster.to_ask == [2, 3, 1]
        assert cluster.leader_of("t") in (2, 3)
        cluster.wait_for_isr("t", 0, {2, 3})
        cluster.heal()
        assert cluster.to_ask == [1, 2, 3]
        cluster.wait_for_isr("t", 0, {1, 2, 3})

        cluster.isolate(2)
        assert cluster.running == [1, 3]
        with pytest.raises(NodeStuck):
            cluster.brokers_known_to(2)
        cluster.repair()
        assert cluster.running == [1, 2, 3]
        cluster.wait_for_isr("t", 0, {1, 2, 3})


def test_a_topic_is_created_when_the_nodes_of_its_replicas_know_it(tmp_path: Path) -> None:
    with Cluster(directory=tmp_path) as cluster:
        cut_off = next(node for node in cluster.nodes if node != cluster.controller())
        cluster.partition([cut_off], [node for node in cluster.nodes if node != cut_off])
        with pytest.raises(NodeStuck, match="all replicas of t to be in sync"):
            cluster.create_topic("t", assignment=[list(cluster.nodes)], timeout=1)
        cluster.heal()
        cluster.create_topic("u", assignment=[list(cluster.nodes)])
        assert all("u" in cluster.topics(node) for node in cluster.nodes)


def test_a_node_that_only_hears_is_fenced_and_comes_back(tmp_path: Path) -> None:
    with Cluster(directory=tmp_path) as cluster:
        cluster.create_topic("t", 1, 3)
        mute = next(node for node in cluster.nodes if node != cluster.controller())
        others = [node for node in cluster.nodes if node != mute]
        cluster.partition([mute], [*others, CLIENTS], one_way=True)
        cluster.wait_for_isr("t", 0, others)
        cluster.heal()
        cluster.wait_for_isr("t", 0, cluster.nodes)


def test_a_slow_node_answers_late(tmp_path: Path) -> None:
    with Cluster(brokers=1, directory=tmp_path) as cluster:
        cluster.create_topic("t", 1, 1)
        cluster.slow(1, latency_ms=50, bytes_per_second=1_000_000)
        send_values(producer_of(cluster), "t", numbered(100))
        cluster.slow(1)
        began = time.monotonic()
        send_values(producer_of(cluster), "t", numbered(100))
        assert time.monotonic() - began >= 2 * SLOW_MS / 1000


def test_a_paused_node_goes_on_to_be_stopped_or_restarted(tmp_path: Path) -> None:
    with Cluster(brokers=1, directory=tmp_path) as cluster:
        cluster.pause(1)
        cluster.restart(1)
        assert cluster.running == [1]
        cluster.pause(1)
        assert cluster.stop(1) == 0
        with pytest.raises(FaultRefused, match=r"pause: node 1 does not run \(ended with status 0"):
            cluster.pause(1)
        with pytest.raises(FaultRefused, match="fill_disk: node 1 does not run"):
            cluster.fill_disk(1)


def test_a_wait_that_times_out_reports_the_state_that_was_seen(tmp_path: Path) -> None:
    with Cluster(brokers=1, directory=tmp_path) as cluster:
        cluster.create_topic("t", 2)
        waits = {
            "a leader of typo-0; there is no topic typo": cluster.leader_of,
            "typo-0 to have no leader; there is no topic typo": cluster.wait_for_no_leader,
        }
        for said, wait in waits.items():
            with pytest.raises(NodeStuck, match=f"^timed out waiting for {said}$"):
                wait("typo", timeout=0)
        with pytest.raises(NodeStuck, match=r"of t-7 to be 1; t has no partition 7, only 0, 1$"):
            cluster.wait_for_isr("t", 7, [1], timeout=0.1)
        with pytest.raises(NodeStuck, match=r"to be 3 in number; .* t-1 led by 1, in sync 1$"):
            cluster.wait_for_isr("t", 1, size=3, timeout=0.1)
        with pytest.raises(NodeStuck, match="of t-0; last seen: t-0 led by 1"):
            cluster.wait_for_replicas("t", 0, [2], timeout=0.1)
        with pytest.raises(NodeStuck, match=r"^timed out waiting for a miracle$"):
            cluster.wait_for(lambda: None, "a miracle", timeout=0)
        with pytest.raises(ValueError, match="members or size is needed"):
            cluster.wait_for_isr("t")
        cluster.kill(1)
        with pytest.raises(NodeStuck, match="no node runs that clients can reach"):
            cluster.create_topic("late", timeout=0)


def test_a_topic_is_created_by_whoever_can_be_asked(tmp_path: Path) -> None:
    """The first node is paused or isolated, so the kit asks the next one."""
    patient = {"broker.session.timeout.ms": "60000"}  # so that no broker is fenced meanwhile
    with Cluster(directory=tmp_path, properties=patient) as cluster:
        cluster.pause(1)
        began = time.monotonic()
        cluster.create_topic("while-1-is-paused", assignment=[[2, 3, 1]])
        assert time.monotonic() - began < ENDLESS
        cluster.resume(1)
        cluster.isolate(1)
        began = time.monotonic()
        cluster.create_topic("while-1-is-isolated", assignment=[[3, 2]])
        assert time.monotonic() - began < ENDLESS
        cluster.heal()
        cluster.partition([1], [2, 3])
        began = time.monotonic()
        cluster.create_topic("while-1-is-cut-off", assignment=[[3, 2]])
        assert time.monotonic() - began < ENDLESS


EVERY_FAULT = """
from tidelog.testing import Cluster

def test_all_that_a_cluster_can_be_told():
    with Cluster(brokers=3) as cluster:
        cluster.create_topic("t")
        cluster.pause(cluster.leader_of("t", 0))
        cluster.repair()
        cluster.slow(2)
        cluster.partition([1], [2, 3])
        cluster.repair()
        cluster.fill_disk(3)
        cluster.free_disk(3)
        cluster.restart(3)
        cluster.stop(1)
        cluster.restart(1)
        cluster.kill(cluster.leader_of("t", 0))
        cluster.wait_for_isr("t", 0, size=2)

def test_the_shared_one_can_be_cut(tidelog_shared_cluster):
    tidelog_shared_cluster.partition([1], [2, 3])
    tidelog_shared_cluster.slow(1)
"""


def test_every_fault_is_there_unless_it_is_asked_not_to_be(tmp_path: Path) -> None:
    done = pytest_run(tmp_path, EVERY_FAULT)
    assert "2 passed" in done.stdout, done.stdout + done.stderr


DISKS = {"files that may not grow": None} | (
    {"a small file system": 64 << 20} if os.geteuid() == 0 else {}
)


def says_that_it_is_full(node: NodeProcess) -> bool | None:
    said = node.log_text()
    return True if "No space left" in said or "File too large" in said else None


@pytest.mark.parametrize("disk_bytes", DISKS.values(), ids=DISKS)
def test_a_full_disk_is_noticed_and_others_take_over(
    tmp_path: Path, disk_bytes: int | None
) -> None:
    with Cluster(directory=tmp_path, disk_bytes=disk_bytes) as cluster:
        cluster.create_topic("t", assignment=[[1, 2, 3]], min_insync_replicas=2)
        send_values(producer_of(cluster), "t", numbered(10))
        cluster.fill_disk(1)
        send_values(producer_of(cluster, message_timeout_ms=0), "t", numbered(200))
        cluster.wait_for_isr("t", 0, {2, 3})
        cluster.wait_for(lambda: says_that_it_is_full(cluster.nodes[1]), "word of the full disk")
        cluster.free_disk(1)
        cluster.restart(1)
        cluster.wait_for_isr("t", 0, {1, 2, 3})
