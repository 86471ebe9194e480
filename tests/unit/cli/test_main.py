"""Every failure prints one sentence and sets an exit status; no module is imported needlessly."""

import subprocess
import sys

import pytest

from tidelog import __version__
from tidelog.cli import main as entry
from tidelog.cli.commands import COMMANDS, cli, invoke
from tidelog.model.user_error import UserError


def fail(error: Exception) -> int:
    raise error


@pytest.mark.parametrize(
    ("error", "sentence"),
    [
        (UserError("the tide is out."), "tidelog: the tide is out.\n"),
        (FileNotFoundError(2, "No such file", "x.log"), "tidelog: x.log: No such file\n"),
        (
            KeyError("x"),
            "tidelog: this is a bug in Tidelog: KeyError: 'x' "
            "(TIDELOG_DEBUG=1 shows where it happened)\n",
        ),
    ],
)
def test_a_failure_is_one_sentence(
    error: Exception, sentence: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert entry.reported(lambda: fail(error)) == 1
    assert capsys.readouterr() == ("", sentence)


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["toppics"], "tidelog: No such command 'toppics'"),
        (["topics", "--nope"], "tidelog: No such option '--nope'"),
        (["topics"], "tidelog: exactly one of --create, --list, --describe"),
        (["topics", "--create", "--list"], "tidelog: exactly one of --create, --list"),
        (["topics", "--list", "--partitions", "3"], "tidelog: --partitions does not go with"),
        (["topics", "--create"], "tidelog: --topic is needed"),
        (["topics", "--alter", "--topic", "a"], "tidelog: --alter needs --partitions"),
        (["consume", "--topic", "a", "--offset", "3"], "tidelog: --offset needs --partition"),
        (["configs", "--describe"], "tidelog: exactly one of --topic, --broker and --entity-type"),
        (["groups"], "tidelog: exactly one of --list, --describe, --reset-offsets, --delete and"),
        (["groups", "--describe"], "tidelog: exactly one of --group and --all-groups"),
        (["groups", "--list", "--group", "a"], "tidelog: --group does not go with --list"),
        (["groups", "--list", "--to-offset", "0"], "tidelog: --to-offset does not go with --list"),
        (
            ["groups", "--reset-offsets", "--group", "a", "--topic", "t"],
            "tidelog: --reset-offsets needs exactly one of --to-offset, --to-datetime",
        ),
        (
            ["groups", "--reset-offsets", "--group", "a", "--to-latest"],
            "tidelog: One of the reset scopes should be defined: --all-topics, --topic",
        ),
        (["groups", "--list", "--state", "odd"], "tidelog: Invalid state list 'odd'. Valid states"),
        (["groups", "--list", "--type", "share"], "tidelog: Invalid types list 'share'. Valid ty"),
        (
            ["groups", "--describe", "--group", "a", "--state", "empty"],
            "tidelog: --describe does not take a value for --state",
        ),
        (["reassign"], "tidelog: exactly one of --generate, --execute, --verify, --cancel and"),
        (["reassign", "--execute"], "tidelog: --execute needs --reassignment-json-file"),
        (["reassign", "--list", "--throttle", "0"], "tidelog: --throttle does not go with --list"),
        (["reassign", "--generate"], "tidelog: --generate needs --topics-to-move-json-file and"),
        (["elect"], "tidelog: Missing option '--election-type'"),
        (
            ["elect", "--election-type", "preferred"],
            "tidelog: exactly one of --topic, --all-topic-partitions and --path-to-json-file",
        ),
        (
            ["elect", "--election-type", "preferred", "--topic", "t"],
            "tidelog: --topic and --partition go together",
        ),
        (["delete-records"], "tidelog: Missing option '--offset-json-file'"),
        (["log-dirs"], "tidelog: Missing option '--describe'"),
        (["log-dirs", "--describe", "--broker-list", "x"], "tidelog: --broker-list: 'x' is not a"),
        (["dump-log"], "tidelog: name at least one file"),
        (["quorum", "describe"], "tidelog: exactly one of --status and --replication"),
        (["node", "kill"], "tidelog: Missing argument 'ID'"),
        (["serve"], "tidelog: Missing option '--config'"),
        *(
            ([name, "--interval", seconds], f"tidelog: Invalid value for '--interval': {seconds}")
            for name in ("replicas", "observe")
            for seconds in ("-1", "0", "nan", "inf")
        ),
    ],
)
def test_a_wrong_command_line_is_one_sentence_and_status_2(
    arguments: list[str], sentence: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert invoke(arguments) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith(sentence)
    assert err.endswith("--help).\n")
    assert err.count("\n") == 1


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_explains_itself(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert invoke([name, "--help"]) == 0
    out, _ = capsys.readouterr()
    assert out.startswith(f"Usage: tidelog {name}")


def test_help_shows_every_command_and_is_what_no_arguments_give(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert invoke(["--help"]) == 0
    asked, _ = capsys.readouterr()
    assert invoke([]) == 0
    unasked, _ = capsys.readouterr()
    assert asked == unasked
    for name, entry_ in COMMANDS.items():
        assert f"  {name} " in asked
        assert entry_.summary in asked


def test_version(capsys: pytest.CaptureFixture[str]) -> None:
    assert invoke(["--version"]) == 0
    assert capsys.readouterr().out == f"tidelog {__version__}\n"


def test_the_group_imports_no_command_to_list_them() -> None:
    assert cli.name == "cli"
    script = (
        "import sys; from tidelog.cli.commands import invoke; invoke(['--help']);"
        "sys.exit(any(m.startswith(('tidelog.cli.kafka_tools', 'kio')) for m in sys.modules))"
    )
    assert subprocess.run([sys.executable, "-c", script], stdout=subprocess.DEVNULL).returncode == 0


def test_a_broker_starts_without_click_and_without_hypothesis() -> None:
    script = (
        "import sys; from tidelog.cli import main; sys.argv[1:] = ['serve', '--config', 'absent'];"
        "status = main.main(); import tidelog.model.errors;"
        "sys.exit(status != 1 or 'click' in sys.modules or bool(sys.modules['hypothesis']))"
    )
    done = subprocess.run([sys.executable, "-c", script], stderr=subprocess.PIPE, text=True)
    assert (done.returncode, done.stderr) == (
        0,
        "tidelog: absent: No such file or directory.\n",
    )
