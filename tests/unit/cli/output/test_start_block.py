"""The output of `up` when its cluster is ready."""

from pathlib import Path

import pytest

from tidelog.cli.output.start_block import start_block
from tidelog.clusters.local_cluster import LocalCluster


def test_the_block_of_a_new_cluster() -> None:
    cluster = LocalCluster(Path("tidelog-data"), 3, 9092, has_metrics=True)
    assert list(start_block(cluster, "./tidelog", is_new=True)) == [
        "bootstrap 127.0.0.1:9092,127.0.0.1:9093,127.0.0.1:9094",
        "metrics   http://127.0.0.1:14092/metrics and two more",
        "directory tidelog-data",
        "export    TIDELOG_BOOTSTRAP_SERVER=127.0.0.1:9092,127.0.0.1:9093,127.0.0.1:9094",
        "next      ./tidelog topics --create --topic hello --partitions 3",
        "          (in another terminal; Ctrl-C stops the cluster, its data stays)",
    ]


@pytest.mark.parametrize(
    ("brokers", "shown"), [(1, "/metrics"), (2, " and one more"), (12, " and 11 more")]
)
def test_the_number_of_other_metrics_addresses(brokers: int, shown: str) -> None:
    cluster = LocalCluster(Path("d"), brokers, 9092, has_metrics=True)
    assert list(start_block(cluster, "tidelog", is_new=False))[1].endswith(shown)


def test_a_cluster_that_ran_before_is_not_asked_to_create_its_topic_again() -> None:
    cluster = LocalCluster(Path("d"), 1, 9092)
    printed = list(start_block(cluster, "tidelog", is_new=False))
    assert "next      tidelog topics --list" in printed
    assert not any(line.startswith("metrics") for line in printed)


def test_the_address_of_the_console_follows_the_bootstrap_address() -> None:
    cluster = LocalCluster(Path("d"), 1, 9092)
    printed = list(start_block(cluster, "tidelog", is_new=False, console="http://127.0.0.1:8080"))
    assert printed[:2] == ["bootstrap 127.0.0.1:9092", "console   http://127.0.0.1:8080"]


@pytest.mark.parametrize(
    ("tables", "shown"),
    [
        ("d/tables", "tables    d/tables (`tidelog tables` shows them)"),
        ("lake", "tables    lake (`tidelog tables --out lake` shows them)"),
    ],
)
def test_the_command_that_shows_the_tables(tables: str, shown: str) -> None:
    cluster = LocalCluster(Path("d"), 1, 9092)
    assert shown in start_block(cluster, "tidelog", is_new=False, tables=Path(tables))
