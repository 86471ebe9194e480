import json
import socket
from pathlib import Path

import pytest

from tidelog.clusters.formatting import read_identity
from tidelog.clusters.local_cluster import LocalCluster
from tidelog.clusters.node_settings import load_settings
from tidelog.model.user_error import UserError


def test_ports_and_addresses(tmp_path: Path) -> None:
    cluster = LocalCluster(tmp_path, 3, 9092)
    assert cluster.bootstrap == "127.0.0.1:9092,127.0.0.1:9093,127.0.0.1:9094"
    assert [cluster.controller_port(node) for node in cluster.node_ids] == [19092, 19093, 19094]
    assert LocalCluster(tmp_path, 3, 60000).controller_port(1) == 50000


def test_each_node_is_configured_and_formatted_for_one_cluster(tmp_path: Path) -> None:
    cluster = LocalCluster(tmp_path, 3, 9092, {"log.segment.bytes": "1048576"})
    cluster.prepare()
    cluster.prepare()  # a second start changes nothing
    ids = {read_identity(str(cluster.data(node)))["cluster.id"] for node in cluster.node_ids}
    assert len(ids) == 1
    for node in cluster.node_ids:
        settings = load_settings(str(cluster.config(node)), {})
        assert settings.node_id == node
        assert settings.warnings == ()
        assert len(settings.controller_quorum_voters) == 3
        assert (settings.default_replication_factor, settings.min_insync_replicas) == (3, 2)
        assert settings.raw["log.segment.bytes"] == "1048576"


def test_the_state_is_written_when_all_nodes_take_writes(tmp_path: Path) -> None:
    cluster = LocalCluster(tmp_path, 2, 9092)
    cluster.prepare()
    state = tmp_path / "cluster.json"
    assert not cluster.note(2, 22)
    assert not state.exists()
    assert cluster.note(1, 11)
    written = json.loads(state.read_text())
    assert written["bootstrap"] == cluster.bootstrap
    assert written["nodes"] == [
        {"id": 1, "pid": 11, "ports": {"broker": 9092, "controller": 19092}},
        {"id": 2, "pid": 22, "ports": {"broker": 9093, "controller": 19093}},
    ]

    assert not cluster.note(2, 33)  # a restart is recorded, but the cluster is not announced again
    assert json.loads(state.read_text())["nodes"][1]["pid"] == 33
    assert not cluster.note(1, None)
    assert not cluster.note(2, 44)
    assert [node["pid"] for node in json.loads(state.read_text())["nodes"]] == [None, 44]


def test_nothing_but_data_is_left_when_it_ends(tmp_path: Path) -> None:
    cluster = LocalCluster(tmp_path, 1, 9092)
    cluster.claim()
    cluster.prepare()
    cluster.note(1, 11)
    cluster.release()
    assert [path.name for path in tmp_path.iterdir()] == ["1"]


def test_a_start_that_fails_leaves_nothing(tmp_path: Path) -> None:
    cluster = LocalCluster(tmp_path / "new" / "deep", 3, 9092, {"num.partitions": "many"})
    cluster.claim()
    with pytest.raises(UserError, match=r"num\.partitions"):
        cluster.prepare()
    cluster.release()
    assert list(tmp_path.iterdir()) == []


def test_a_lock_that_is_removed_by_its_owner_is_taken_by_one_only(tmp_path: Path) -> None:
    """A process may open the lock file before its removal, and then lock the removed file."""
    for _ in range(20):
        first, second = LocalCluster(tmp_path, 1, 9092), LocalCluster(tmp_path, 1, 9092)
        first.claim()
        first.release()
        second.claim()
        with pytest.raises(UserError, match="already"):
            first.claim()
        second.release()


@pytest.mark.parametrize("state", ["[]", "{}", "7", '{"bootstrap": ', "", "\udcff"])
def test_garbage_in_the_state_is_no_bug(tmp_path: Path, state: str) -> None:
    first, second = LocalCluster(tmp_path, 1, 9092), LocalCluster(tmp_path, 1, 9092)
    first.claim()
    (tmp_path / "cluster.json").write_bytes(state.encode(errors="surrogateescape"))
    with pytest.raises(UserError, match=f"a cluster is running in {tmp_path} already\\."):
        second.claim()
    first.release()
    second.claim()  # files that a killed `up` left do not matter
    assert not (tmp_path / "cluster.json").exists()
    second.release()


@pytest.mark.parametrize(
    "name",
    [
        "back\\slash",
        "new\nline",
        "ta\tb",
        "eq=ual",
        " leading",
        "trailing ",
        "#hash",
        "!bang",
        "co:lon",
        "$HOME",
        "\\u0041",
        "潮 🌊",
        "\udcff",
    ],
)
def test_data_lies_in_the_directory_that_was_named(tmp_path: Path, name: str) -> None:
    cluster = LocalCluster(tmp_path / name, 1, 9092)
    cluster.claim()
    cluster.prepare()
    cluster.release()
    assert list(tmp_path.iterdir()) == [tmp_path / name]
    settings = load_settings(str(cluster.config(1)), {})
    assert settings.log_dirs == (str(tmp_path / name / "1" / "data"),)
    assert (tmp_path / name / "1" / "data" / "meta.properties").exists()


def test_a_comma_is_refused_before_anything_is_made(tmp_path: Path) -> None:
    cluster = LocalCluster(tmp_path / "a,b", 1, 9092)
    with pytest.raises(UserError, match="contains a comma"):
        cluster.claim()
    with pytest.raises(UserError, match="contains a comma"):
        cluster.prepare()
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(("brokers", "port"), [(6_000, 9092), (40_000, 9092), (10, 65_530)])
def test_brokers_for_which_there_are_no_ports_are_refused(
    tmp_path: Path, brokers: int, port: int
) -> None:
    with pytest.raises(UserError, match=f"there are no ports for {brokers} brokers"):
        LocalCluster(tmp_path, brokers, port, has_metrics=True).check_ports()


def test_a_directory_has_one_cluster_at_a_time(tmp_path: Path) -> None:
    first, second = LocalCluster(tmp_path, 1, 9092), LocalCluster(tmp_path, 1, 9192)
    first.claim()
    with pytest.raises(UserError, match=f"a cluster is running in {tmp_path} already\\."):
        second.claim()
    first.prepare()
    first.note(1, 11)
    with pytest.raises(UserError, match=r"already \(bootstrap 127\.0\.0\.1:9092\)\."):
        second.claim()


def test_a_port_in_use_is_named(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(UserError, match=f"port {port} on 127.0.0.1 is in use"):
            LocalCluster(tmp_path, 1, port).check_ports()


def test_clients_of_other_machines_get_a_listener_of_their_own(tmp_path: Path) -> None:
    cluster = LocalCluster(tmp_path, 3, 9092, host="0.0.0.0", advertised_host="10.0.0.7")
    cluster.prepare()
    assert cluster.bootstrap == "10.0.0.7:9092,10.0.0.7:9093,10.0.0.7:9094"
    assert cluster.metrics_address(2) == "http://10.0.0.7:14093/metrics"
    settings = load_settings(str(cluster.config(2)), {})
    assert [(one.name, one.host, one.port) for one in settings.listeners] == [
        ("PLAINTEXT", "0.0.0.0", 9093),
        ("CONTROLLER", "127.0.0.1", 19093),
        ("INTERNAL", "127.0.0.1", 11593),
    ]
    assert settings.inter_broker_listener_name == "INTERNAL"
    assert LocalCluster(tmp_path, 1, 9092, host="::1").bootstrap == "[::1]:9092"
    cluster.check_ports()


def test_an_address_of_another_machine_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"this machine cannot listen on 192\.0\.2\.1"):
        LocalCluster(tmp_path, 1, 9092, host="192.0.2.1").check_ports()
