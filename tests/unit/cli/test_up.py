"""Addresses that `up` accepts and refuses."""

from pathlib import Path

import click
import pytest

from tidelog.cli.commands import invoke
from tidelog.cli.up import check_hosts


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        (["--host", "0.0.0.0"], "--host 0.0.0.0 also needs --advertised-host"),
        (["--host", "a b"], "--host: 'a b' is not an address"),
        (["--host", ""], "--host: '' is not an address"),
        (["--advertised-host", "::"], "--advertised-host: clients cannot connect to ::"),
    ],
)
def test_an_address_that_clients_cannot_use_is_refused(
    options: list[str], sentence: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert invoke(["up", "--dir", str(tmp_path / "new"), *options]) == 2
    assert capsys.readouterr().err.startswith(f"tidelog: {sentence}")
    assert list(tmp_path.iterdir()) == []


def test_listening_for_other_machines_is_warned_of(capsys: pytest.CaptureFixture[str]) -> None:
    check_hosts("127.0.0.1", None)
    assert capsys.readouterr().err == ""
    check_hosts("0.0.0.0", "broker.example")
    assert capsys.readouterr().err == (
        "tidelog: WARNING: this cluster asks for no password, so everyone who can reach "
        "broker.example can read, change and delete all data of this cluster.\n"
    )
    with pytest.raises(click.UsageError):
        check_hosts("10.0.0.7:9092,", None)
