from pathlib import Path

import pytest

from tidelog.cli.commands import invoke
from tidelog.clusters.formatting import read_identity
from tidelog.model.user_error import UserError
from tidelog.node.metadata.snapshot_files import BOOTSTRAP, decode
from tidelog.replication.quorum.voters import VoterMembership, text_of

CLUSTER, OTHER = "4L6g3nShT-eMCtK--X86sw", "AL6g3nShT-eMCtK--X86sA"


@pytest.fixture
def config(tmp_path: Path) -> Path:
    path = tmp_path / "server.properties"
    path.write_text(
        "process.roles=broker,controller\nnode.id=7\ncontroller.quorum.voters=7@localhost:2\n"
        "listeners=PLAINTEXT://localhost:1,CONTROLLER://localhost:2\n"
        "controller.listener.names=CONTROLLER\n"
        f"log.dirs={tmp_path}/a,{tmp_path}/b\n"
    )
    return path


def test_every_directory_gets_the_nodes_identity_and_one_of_its_own(config: Path) -> None:
    assert invoke(["format", "--config", str(config), "--cluster-id", CLUSTER]) == 0
    identities = [read_identity(str(config.parent / name)) for name in "ab"]
    for identity in identities:
        assert {key: identity[key] for key in ("version", "cluster.id", "node.id")} == {
            "version": "1",
            "cluster.id": CLUSTER,
            "node.id": "7",
        }
    assert identities[0]["directory.id"] != identities[1]["directory.id"]


def test_formatting_twice_is_refused_or_ignored(
    config: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    again = ["format", "--config", str(config)]
    assert invoke(again) == 0
    with pytest.raises(UserError, match=r"is already formatted\. Use --ignore-formatted"):
        invoke(again)
    capsys.readouterr()
    assert invoke([*again, "--ignore-formatted"]) == 0
    assert capsys.readouterr().out == "All of the log directories are already formatted.\n"


def test_a_new_directory_joins_the_cluster_of_the_others(config: Path) -> None:
    command = ["format", "--config", str(config), "--ignore-formatted"]
    assert invoke([*command, "--override", f"log.dirs={config.parent}/a"]) == 0
    assert invoke(command) == 0
    a, b = (read_identity(str(config.parent / name)) for name in "ab")
    assert a["cluster.id"] == b["cluster.id"]


def test_another_clusters_or_nodes_directory_is_left_alone(config: Path) -> None:
    command = ["format", "--config", str(config), "--ignore-formatted", "--cluster-id"]
    assert invoke([*command, CLUSTER]) == 0
    with pytest.raises(UserError, match=f"belongs to the cluster {CLUSTER}, not to {OTHER}"):
        invoke([*command, OTHER])
    moved = ["--override", "node.id=8", "--override", "controller.quorum.voters=8@localhost:2"]
    with pytest.raises(UserError, match="belongs to node 7, not to 8"):
        invoke([*command, CLUSTER, *moved])


def test_a_bad_cluster_id_and_a_bad_setting_are_told(
    config: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert invoke(["format", "--config", str(config), "--cluster-id", "short"]) == 2
    assert "is not 22 letters of base64" in capsys.readouterr().err
    with pytest.raises(UserError, match=r"num\.partitions"):
        invoke(["format", "--config", str(config), "--override", "num.partitions=many"])


# -- the first voters ------------------------------------------------------------------------------

DYNAMIC = ["--override", "controller.quorum.voters="]
DYNAMIC += ["--override", "controller.quorum.bootstrap.servers=localhost:2"]


def first_voters(logs: Path) -> VoterMembership:
    path = logs / "__cluster_metadata-0" / "00000000000000000000-0000000000.checkpoint"
    found = decode(BOOTSTRAP, path.read_bytes(), CLUSTER)
    assert found is not None
    return found.membership


def test_a_controller_alone_votes_at_first(config: Path) -> None:
    assert invoke(["format", "--config", str(config), *DYNAMIC, "--standalone"]) == 0
    logs = config.parent / "a"
    kraft_version, voters = first_voters(logs)
    assert kraft_version == 1
    assert voters is not None
    [voter] = voters.voters.values()
    assert text_of(voter.key) == read_identity(str(logs))["directory.id"]
    assert voter.endpoints == (("CONTROLLER", "localhost", 2),)
    assert not (config.parent / "b" / "__cluster_metadata-0").exists()


def test_initial_controllers_name_their_directories(config: Path) -> None:
    mine, other = "AAAAAAAAAAAAAAAAAAAAcQ", "BAAAAAAAAAAAAAAAAAAAcQ"
    all_ = f"7@localhost:2:{mine},8@elsewhere:3:{other}"
    command = ["format", "--config", str(config), *DYNAMIC, "--initial-controllers"]
    assert invoke([*command, all_]) == 0
    logs = config.parent / "a"
    assert read_identity(str(logs))["directory.id"] == mine, "as the others were promised"
    voters = first_voters(logs).voters
    assert voters is not None
    assert {id_: text_of(voter.key) for id_, voter in voters.voters.items()} == {7: mine, 8: other}
    assert voters.voters[8].endpoints == (("CONTROLLER", "elsewhere", 3),)


def test_a_controller_to_be_added_later_knows_no_voters(config: Path) -> None:
    assert invoke(["format", "--config", str(config), *DYNAMIC, "--no-initial-controllers"]) == 0
    assert not (config.parent / "a" / "__cluster_metadata-0").exists()


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        (["--standalone"], "controller.quorum.voters names the voters"),
        (DYNAMIC, "controller.quorum.voters is not set on this controller"),
        ([*DYNAMIC, "-s", "-N"], "choose one of"),
        ([*DYNAMIC, "-I", "7@localhost:2"], "is not ID@HOST:PORT:DIRECTORY"),
        ([*DYNAMIC, "-I", "8@localhost:2:AAAAAAAAAAAAAAAAAAAAcQ"], "7, is not among them"),
    ],
)
def test_who_votes_at_first_is_said_once(
    config: Path, capsys: pytest.CaptureFixture[str], words: list[str], reason: str
) -> None:
    assert invoke(["format", "--config", str(config), *words]) == 2
    assert reason in " ".join(capsys.readouterr().err.split())
