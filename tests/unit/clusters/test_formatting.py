"""Formatting the log directories of a node."""

import stat
from pathlib import Path

import pytest

from tidelog.clusters.first_voters import FirstVoters
from tidelog.clusters.formatting import format_directories, read_identity
from tidelog.config.settings import BrokerSettings


def settings(directory: Path) -> BrokerSettings:
    return BrokerSettings.from_properties(
        {
            "node.id": "1",
            "process.roles": "broker,controller",
            "listeners": "PLAINTEXT://127.0.0.1:9092,CONTROLLER://127.0.0.1:9093",
            "controller.listener.names": "CONTROLLER",
            "controller.quorum.bootstrap.servers": "127.0.0.1:9093",
            "log.dirs": str(directory),
        }
    )


@pytest.mark.parametrize("is_standalone", [False, True])
def test_only_the_user_of_a_node_can_read_its_directory(
    is_standalone: bool, tmp_path: Path
) -> None:
    data = tmp_path / "above" / "data"
    first = FirstVoters(is_standalone=is_standalone)
    format_directories(settings(data), "abc", first, ignore_formatted=False)
    assert stat.S_IMODE(data.stat().st_mode) == 0o700
    assert read_identity(str(data))["cluster.id"] == "abc"


def test_a_directory_that_exists_keeps_its_mode(tmp_path: Path) -> None:
    data = tmp_path / "data"
    data.mkdir()
    data.chmod(0o755)
    format_directories(settings(data), "abc", ignore_formatted=False)
    assert stat.S_IMODE(data.stat().st_mode) == 0o755
