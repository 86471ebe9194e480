"""The message that lists which keys of a file have no effect."""

import pytest

from tidelog.config.keys.unused_keys import unused_keys_message


@pytest.mark.parametrize(
    ("names", "message"),
    [
        (
            ["num.io.threads", "remote.fetch.max.wait.ms", "background.threads", "node.id"],
            "these keys of the configuration have no effect here: "
            "background.threads, num.io.threads; not supported yet: remote.fetch.max.wait.ms",
        ),
        (
            ["queued.max.requests"],
            "these keys of the configuration have no effect here: queued.max.requests",
        ),
        (
            ["principal.builder.class", "rsm.config.bucket", "listener.name.plaintext.no.such.key"],
            "these keys of the configuration are not supported yet: "
            "listener.name.plaintext.no.such.key, principal.builder.class, rsm.config.bucket",
        ),
    ],
)
def test_keys_without_effect_are_named(names: list[str], message: str) -> None:
    assert unused_keys_message(names) == message


@pytest.mark.parametrize(
    "name",
    [
        "num.partitions",
        "max.connections.per.ip",
        "listener.name.plaintext.max.connections",
        "listener.name.clients.ssl.keystore.location",
        "broker.id",
        # This key already has its own warning.
        "no.such.key",
        "authorizer.class.name",
    ],
)
def test_other_keys_are_not_named(name: str) -> None:
    assert unused_keys_message([name]) is None
