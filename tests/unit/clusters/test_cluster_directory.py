"""A cluster's directory stores its size and members. `up` refuses to start with other values."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tidelog.clusters import cluster_directory
from tidelog.clusters.cluster_directory import ClusterDirectory, holder_of
from tidelog.clusters.first_voters import FirstVoters, write_first_voters
from tidelog.clusters.local_cluster import LocalCluster
from tidelog.clusters.node_settings import load_settings
from tidelog.clusters.recorded_voters import recorded_voters
from tidelog.model.ids import METADATA_TOPIC
from tidelog.model.user_error import UserError
from tidelog.runtime.dice import SystemDice


def made(directory: Path, brokers: int = 3, port: int = 9092, *, has_run: bool = True) -> Path:
    """The directory of a cluster as `up` leaves it."""
    layout = LocalCluster(directory, brokers, port)
    layout.directory.mkdir(exist_ok=True)
    layout.prepare()
    for node in layout.node_ids if has_run else ():
        (layout.data(node) / f"{METADATA_TOPIC}-0").mkdir()
    return directory


def check(directory: Path, brokers: int = 3, port: int = 9092) -> list[str]:
    addresses = LocalCluster(directory, brokers, port).controller_addresses()
    return ClusterDirectory(directory).check(brokers, addresses)


def refusal(directory: Path, brokers: int = 3, port: int = 9092) -> str:
    with pytest.raises(UserError) as failure:
        check(directory, brokers, port)
    return str(failure.value).replace(str(directory), "DIR")


def test_a_new_directory_takes_any_cluster(tmp_path: Path) -> None:
    assert ClusterDirectory(tmp_path / "absent").brokers is None
    (tmp_path / "notes").mkdir()
    (tmp_path / "7").mkdir()
    assert ClusterDirectory(tmp_path).brokers is None
    assert check(tmp_path, brokers=5) == []


def test_the_same_cluster_starts_again_also_on_other_ports(tmp_path: Path) -> None:
    made(tmp_path)
    assert ClusterDirectory(tmp_path).brokers == 3
    assert check(tmp_path) == []
    assert check(tmp_path, port=19092) == []


@pytest.mark.parametrize("brokers", [1, 2, 4, 5])
def test_another_number_of_brokers_is_refused(tmp_path: Path, brokers: int) -> None:
    made(tmp_path)
    assert refusal(tmp_path, brokers) == (
        "DIR holds a cluster of 3 brokers: start it with --brokers 3, "
        "or use another --dir for a new cluster."
    )


def test_the_size_is_known_where_a_start_with_fewer_has_rewritten_a_configuration(
    tmp_path: Path,
) -> None:
    made(tmp_path)
    LocalCluster(tmp_path, 1, 9092).prepare()
    assert ClusterDirectory(tmp_path).brokers == 3


def test_the_size_is_known_without_any_configuration(tmp_path: Path) -> None:
    made(tmp_path)
    for node in (1, 2, 3):
        (tmp_path / str(node) / "server.properties").unlink()
    assert ClusterDirectory(tmp_path).brokers == 3


def test_f40_a_minority_of_the_nodes_is_made_anew_and_this_is_said(tmp_path: Path) -> None:
    made(tmp_path)
    shutil.rmtree(tmp_path / "2")
    assert check(tmp_path) == [
        f"{tmp_path}/2/data is missing: node 2 starts empty and copies everything from the others"
    ]


@pytest.mark.parametrize("gone", [(1, 2), (2, 3)])
def test_f40_without_a_majority_nothing_is_made_anew(tmp_path: Path, gone: tuple[int, ...]) -> None:
    made(tmp_path)
    for node in gone:
        shutil.rmtree(tmp_path / str(node))
    assert refusal(tmp_path).endswith(
        "missing, and 1 of 3 controllers are no majority. "
        "Restore the missing directories, or use another --dir for a new cluster."
    )


def test_a_start_that_was_interrupted_before_all_were_formatted_goes_on(tmp_path: Path) -> None:
    made(tmp_path, has_run=False)
    shutil.rmtree(tmp_path / "2")
    shutil.rmtree(tmp_path / "3")
    assert check(tmp_path) == []


@pytest.mark.parametrize("content", [None, b"", b"\xff\xfe\x00garbage", b"cluster.id=x\n"])
def test_a_node_that_does_not_say_whose_it_is_is_refused(
    tmp_path: Path, content: bytes | None
) -> None:
    made(tmp_path)
    meta = tmp_path / "2" / "data" / "meta.properties"
    meta.unlink()
    meta.with_name("meta.properties.copy").unlink()
    if content is not None:
        meta.write_bytes(content)
    message = refusal(tmp_path)
    assert message.startswith("DIR/2/data/meta.properties ")
    assert "Restore it, or move DIR/2 away" in message


@pytest.mark.parametrize("content", [None, b"", b"\xff\xfe\x00garbage", b"cluster.id=x\n"])
def test_f59_a_node_with_a_sound_copy_of_its_identity_starts(
    tmp_path: Path, content: bytes | None
) -> None:
    made(tmp_path)
    meta = tmp_path / "2" / "data" / "meta.properties"
    meta.unlink()
    if content is not None:
        meta.write_bytes(content)
    assert check(tmp_path) == []


def test_the_only_node_is_never_to_be_moved_away(tmp_path: Path) -> None:
    made(tmp_path, brokers=1)
    for name in ("meta.properties", "meta.properties.copy"):
        (tmp_path / "1" / "data" / name).unlink()
    assert refusal(tmp_path, brokers=1) == "DIR/1/data/meta.properties is missing. Restore it."


def test_a_node_of_another_cluster_is_refused(tmp_path: Path) -> None:
    for name in ("one", "other"):
        made(tmp_path / name)
    shutil.rmtree(tmp_path / "one" / "3")
    shutil.copytree(tmp_path / "other" / "3", tmp_path / "one" / "3")
    message = refusal(tmp_path / "one")
    assert message.startswith("the nodes in DIR belong to different clusters: DIR/1/data to ")
    assert message.endswith("Each cluster needs a --dir of its own.")


def test_a_node_in_the_place_of_another_is_refused(tmp_path: Path) -> None:
    made(tmp_path)
    shutil.rmtree(tmp_path / "2")
    shutil.copytree(tmp_path / "1", tmp_path / "2")
    assert refusal(tmp_path).startswith("DIR/2/data belongs to node 1, not to node 2")


def test_controllers_that_the_log_knows_by_their_addresses_keep_them(tmp_path: Path) -> None:
    """With kraft.version 1 the voters' addresses are in the log (KIP-853)."""
    made(tmp_path, brokers=1)
    settings = load_settings(str(tmp_path / "1" / "server.properties"), {})
    log = tmp_path / "1" / "data" / f"{METADATA_TOPIC}-0"
    assert recorded_voters(log) == {}
    first = FirstVoters(is_standalone=True)
    write_first_voters(str(tmp_path / "1" / "data"), first, settings, SystemDice().uuid())
    assert recorded_voters(log) == {1: "127.0.0.1:19092"}

    assert check(tmp_path, brokers=1) == []
    assert refusal(tmp_path, brokers=1, port=9292) == (
        "the metadata log in DIR has other addresses of controllers "
        "(kraft.version 1: 1 at 127.0.0.1:19092); start with the same --port as before."
    )


# -- Nodes that still run --------------------------------------------------------------------------


HOLDER = """
import fcntl, sys
with open(sys.argv[1], "w") as lock:
    fcntl.lockf(lock, fcntl.LOCK_EX)
    print("locked", flush=True)
    sys.stdin.read()
"""


def holding(lock: Path) -> "subprocess.Popen[str]":
    """A process that holds a node's lock until its standard input is closed."""
    holder = subprocess.Popen(
        [sys.executable, "-c", HOLDER, str(lock)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert holder.stdout is not None
    assert holder.stdout.readline() == "locked\n"
    return holder


def test_the_holder_of_a_lock_is_known_from_the_kernel(tmp_path: Path) -> None:
    lock = tmp_path / ".lock"
    assert holder_of(lock) is None
    lock.write_text("4711")
    assert holder_of(lock) is None
    with holding(lock) as holder:
        assert holder_of(lock) == holder.pid
        holder.communicate()
    assert holder_of(lock) is None


def test_a_node_that_still_runs_is_waited_for(tmp_path: Path) -> None:
    made(tmp_path)
    message: list[str] = []
    with holding(tmp_path / "2" / "data" / ".lock") as holder:

        def tell(sentence: str) -> None:
            message.append(sentence)
            holder.communicate()

        ClusterDirectory(tmp_path).await_end_of_nodes(tell)
        assert message == [f"waiting for node 2 of an earlier start to end (process {holder.pid})"]


def test_a_node_that_does_not_end_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cluster_directory, "END_SECONDS", 0.0)
    made(tmp_path)
    with holding(tmp_path / "2" / "data" / ".lock") as holder:
        with pytest.raises(UserError) as failure:
            ClusterDirectory(tmp_path).await_end_of_nodes(lambda sentence: None)
        assert str(failure.value) == (
            f"node 2 of an earlier start in {tmp_path} still runs as process {holder.pid}. "
            "End it, then try again."
        )
        holder.communicate()
