"""`tidelog up`: its output when it is ready, the file that lists its nodes, and its shutdown."""

import json
import os
import shutil
import signal
import socket
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka import Producer
from tests.clients.systems import PATIENCE
from tests.cluster.foreground import TIDELOG, Up, await_seen, tidelog
from tests.cluster.ports import first_free_port

from tidelog.cli.help.program import program


@pytest.fixture
def up(tmp_path: Path) -> Iterator[Up]:
    started = Up(tmp_path / "data", first_free_port(1))
    yield started
    started.end()


def acknowledged(bootstrap: str, value: str) -> int:
    """The offset of one record, written with acks=all."""
    offsets: list[int | None] = []
    producer = Producer({"bootstrap.servers": bootstrap, "acks": "all", "log_level": 0})
    producer.produce("t", value, on_delivery=lambda _, message: offsets.append(message.offset()))
    assert producer.flush(PATIENCE) == 0
    (offset,) = offsets
    assert offset is not None
    return offset


def test_announces_itself_once_it_takes_writes_and_goes_on_where_it_ended(up: Up) -> None:
    assert up.bootstrap() == f"127.0.0.1:{up.port}"
    (node,) = up.nodes()
    assert node["id"] == 1
    assert node["ports"]["broker"] == up.port
    os.kill(node["pid"], 0)
    assert acknowledged(f"127.0.0.1:{up.port}", "first") == 0

    assert up.end() == 0
    assert not up.state.exists()
    with pytest.raises(ProcessLookupError):
        os.kill(node["pid"], 0)

    again = Up(up.directory, up.port)
    try:
        assert acknowledged(again.bootstrap(), "second") == 1
    finally:
        assert again.end(signal.SIGTERM) == 0


def test_says_where_the_cluster_is_and_what_to_try_next(up: Up) -> None:
    address = up.bootstrap()
    assert up.process.stdout is not None
    assert [next(up.process.stdout) for _ in range(5)] == [
        f"metrics   http://127.0.0.1:{up.port + 5_000}/metrics\n",
        f"directory {up.directory}\n",
        f"export    TIDELOG_BOOTSTRAP_SERVER={address}\n",
        f"next      {program()} topics --create --topic hello --partitions 3\n",
        "          (in another terminal; Ctrl-C stops the cluster, its data stays)\n",
    ]
    os.kill(up.nodes()[0]["pid"], signal.SIGKILL)
    await_seen(lambda: tidelog("node", "list", "--dir", str(up.directory)), lambda t: " up " in t)
    up.process.send_signal(signal.SIGINT)
    printed = up.process.communicate(timeout=PATIENCE)[1]
    assert "WARNING node 1 ended with status -9 and is started again now" in printed
    assert "INFO node 1: " not in printed, "log lines of the nodes need --verbose"


def test_brokers_listen_on_the_given_address(tmp_path: Path) -> None:
    up = Up(tmp_path / "data", first_free_port(3), brokers=3, options=("--host", "127.0.0.2"))
    try:
        ports = range(up.port, up.port + 3)
        assert up.bootstrap() == ",".join(f"127.0.0.2:{port}" for port in ports)
        assert acknowledged(f"127.0.0.2:{up.port + 1}", "first") == 0
        with pytest.raises(ConnectionRefusedError):
            socket.create_connection(("127.0.0.1", up.port))
    finally:
        assert up.end() == 0


def test_the_only_running_cluster_is_found_without_its_address_and_directory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.delenv("TIDELOG_BOOTSTRAP_SERVER", raising=False)
    up = Up(tmp_path / "data", first_free_port(1))
    try:
        up.bootstrap()
        assert tidelog("topics", "--create", "--topic", "t") == "Created topic t.\n"
        asked = ("whatif", "--topic", "t", "--fault", "all-crash", "--runs", "1", "--jobs", "1")
        answer = tidelog(*asked).splitlines()
        assert answer[:2] == [
            "Assumed, since not given: acks=all.",
            "acks=all min.insync.replicas=1 replication.factor=1: 1 runs per fault",
        ]
        assert tidelog("whatif", "--topic", "no", status=1) == "tidelog: there is no topic 'no'.\n"
        wrong = tidelog("node", "--dir", "wrong", "list", status=1)
        assert wrong == (
            f"tidelog: no cluster is running in wrong; one is running in {up.directory} "
            f"(port {up.port}): use --dir {up.directory}.\n"
        )
        assert tidelog("node", "pause", "1") == "Node 1 is paused.\n"
        assert tidelog("node", "--dir", str(up.directory), "resume", "1") == "Node 1 is resumed.\n"
    finally:
        assert up.end() == 0
    assert list((tmp_path / "state/tidelog/clusters").iterdir()) == []


def test_a_killed_node_is_started_again_and_has_its_new_pid_noted(up: Up) -> None:
    bootstrap = up.bootstrap()
    assert acknowledged(bootstrap, "first") == 0
    (before,) = up.nodes()
    os.kill(before["pid"], signal.SIGKILL)
    assert acknowledged(bootstrap, "second") == 1
    await_seen(lambda: up.nodes()[0]["pid"], lambda pid: pid not in (None, before["pid"]))


def test_three_brokers_listen_on_three_ports_and_outlive_one_of_them(tmp_path: Path) -> None:
    up = Up(tmp_path / "data", first_free_port(3), brokers=3)
    try:
        ports = [up.port, up.port + 1, up.port + 2]
        bootstrap = up.bootstrap()
        assert bootstrap == ",".join(f"127.0.0.1:{port}" for port in ports)
        nodes = up.nodes()
        assert [node["id"] for node in nodes] == [1, 2, 3]
        assert [node["ports"]["broker"] for node in nodes] == ports
        assert acknowledged(bootstrap, "first") == 0
        os.kill(nodes[1]["pid"], signal.SIGKILL)
        assert acknowledged(bootstrap, "second") == 1
    finally:
        assert up.end() == 0


def refused(*arguments: str) -> str:
    done = subprocess.run(
        [*TIDELOG, "up", *arguments],
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
    )
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.count("\n") == 1
    return done.stderr


def test_a_second_up_on_the_same_directory_says_that_it_runs(up: Up) -> None:
    bootstrap = up.bootstrap()
    assert refused("--dir", str(up.directory)) == (
        f"tidelog: a cluster is running in {up.directory} already (bootstrap {bootstrap}).\n"
    )


def test_a_port_in_use_is_one_sentence(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        assert refused("--dir", str(tmp_path), "--port", str(port)) == (
            f"tidelog: port {port} on 127.0.0.1 is in use; choose others with --port.\n"
        )


def test_a_bad_setting_is_one_sentence(tmp_path: Path) -> None:
    where = ("--dir", str(tmp_path), "--port", str(first_free_port(1)), "--brokers", "1")
    assert "num.partitions: 'many' is not usable" in refused(
        *where, "--override", "num.partitions=many"
    )


def stopped(up: Up) -> Path:
    """The directory of a cluster that has run and was stopped."""
    up.bootstrap()
    assert up.end() == 0
    return up.directory


def test_another_number_of_brokers_is_refused_and_changes_nothing(up: Up) -> None:
    directory = stopped(up)
    config = directory / "1" / "server.properties"
    before = config.read_bytes()
    port = ("--port", str(first_free_port(3)))
    assert refused("--dir", str(directory), "--brokers", "3", *port) == (
        f"tidelog: {directory} holds a cluster of 1 broker: start it with --brokers 1, "
        "or use another --dir for a new cluster.\n"
    )
    assert config.read_bytes() == before
    assert sorted(path.name for path in directory.iterdir()) == ["1"]


def test_the_cluster_moves_to_other_ports_with_its_size_and_its_data(up: Up) -> None:
    assert acknowledged(up.bootstrap(), "first") == 0
    assert up.end() == 0
    port = first_free_port(1)
    again = subprocess.Popen(
        [*TIDELOG, "up", "--dir", str(up.directory), "--port", str(port)],
        stdout=subprocess.PIPE,
        text=True,
    )
    assert again.stdout is not None
    with again, again.stdout:
        assert again.stdout.readline() == f"bootstrap 127.0.0.1:{port}\n"
        assert acknowledged(f"127.0.0.1:{port}", "second") == 1
        again.send_signal(signal.SIGINT)


def test_a_failed_up_leaves_nothing_behind(tmp_path: Path) -> None:
    where = ("--dir", str(tmp_path / "new"), "--port", str(first_free_port(1)), "--brokers", "1")
    refused(*where, "--override", "num.partitions=many")
    assert list(tmp_path.iterdir()) == []


def test_f40_a_node_whose_directory_is_gone_starts_empty_and_gets_all_of_it_again(
    tmp_path: Path,
) -> None:
    up = Up(tmp_path / "data", first_free_port(3), brokers=3)
    assert acknowledged(up.bootstrap(), "first") == 0
    assert up.end() == 0
    shutil.rmtree(up.directory / "2")
    again = Up(up.directory, up.port, brokers=3)
    bootstrap = again.bootstrap()
    assert acknowledged(bootstrap, "second") == 1
    described = ("topics", "--describe", "--topic", "t", "--bootstrap-server", bootstrap)
    await_seen(lambda: tidelog(*described), lambda output: "Isr: 1,2,3" in _sorted_isr(output))
    again.process.send_signal(signal.SIGINT)
    _, output = again.process.communicate()
    assert output.startswith(f"tidelog: {up.directory}/2/data is missing: node 2 starts empty")
    assert "uncleanly" not in output


def _sorted_isr(output: str) -> str:
    isr = output.partition("Isr: ")[2].split()[0]
    return f"Isr: {','.join(sorted(isr.split(',')))}"


# -- What a killed `up` leaves behind --------------------------------------------------------------


def test_after_a_killed_up_the_next_waits_for_its_nodes_and_goes_on(up: Up) -> None:
    assert acknowledged(up.bootstrap(), "first") == 0
    up.process.kill()
    up.process.wait()
    again = Up(up.directory, up.port)
    try:
        assert acknowledged(again.bootstrap(), "second") == 1
    finally:
        assert again.end() == 0


def test_a_paused_node_does_not_outlive_its_up_either(up: Up) -> None:
    """If the parent of a stopped process ends, the kernel sends SIGHUP to the process."""
    up.bootstrap()
    (node,) = up.nodes()
    os.kill(node["pid"], signal.SIGSTOP)
    up.process.kill()
    up.process.wait()
    again = Up(up.directory, up.port)
    assert again.bootstrap() == f"127.0.0.1:{up.port}"
    assert again.end() == 0


@pytest.mark.parametrize("verb", ["kill", "stop", "pause"])
def test_a_pid_in_a_stale_file_is_never_signalled(tmp_path: Path, verb: str) -> None:
    """`tidelog node` asks the running `up`, because another process may have the pid by now."""
    with subprocess.Popen(["cat"], stdin=subprocess.PIPE) as bystander:
        node = {"id": 1, "pid": bystander.pid, "ports": {"broker": 9092, "controller": 19092}}
        state = {"cluster_id": "x", "bootstrap": "127.0.0.1:9092", "nodes": [node]}
        (tmp_path / "cluster.json").write_text(json.dumps(state))
        assert tidelog("node", verb, "1", "--dir", str(tmp_path), status=1) == (
            f"tidelog: no cluster is running in {tmp_path}; `tidelog up` starts one.\n"
        )
        status = Path(f"/proc/{bystander.pid}/stat").read_text().rpartition(")")[2].split()[0]
        assert status == "S", "it runs, and is not stopped"
        bystander.communicate()


def test_up_goes_on_in_a_directory_with_a_stale_file(up: Up) -> None:
    directory = stopped(up)
    for garbage in ("[]", json.dumps({"nodes": [{"id": 1, "pid": os.getpid()}]})):
        (directory / "cluster.json").write_text(garbage)
        again = Up(directory, up.port)
        assert again.bootstrap() == f"127.0.0.1:{up.port}"
        assert again.end() == 0
        assert not (directory / "cluster.json").exists()
