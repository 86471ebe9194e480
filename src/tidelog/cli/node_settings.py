"""Reads a server.properties for the commands that take one."""

import socket
from collections.abc import Mapping
from pathlib import Path

from tidelog.cli.errors import CommandFailed
from tidelog.controller.settings import BadSetting, BrokerSettings, parse_properties


def load_settings(config: str, overrides: Mapping[str, str]) -> BrokerSettings:
    """The settings in this file, with single keys replaced."""
    try:
        text = Path(config).read_text(encoding="utf-8")
    except UnicodeDecodeError:
        raise CommandFailed(f"{config}: this is not a text file.") from None
    except OSError as error:
        raise CommandFailed(f"{config}: {error.strerror}.") from None
    return settings_of(config, {**parse_properties(text), **overrides})


def settings_of(config: str, properties: Mapping[str, str]) -> BrokerSettings:
    """The settings that these keys make, as the file `config` has or is to have them."""
    try:
        return BrokerSettings.from_properties(properties, socket.gethostname())
    except BadSetting as bad:
        raise CommandFailed(f"{config}: {bad}.") from None
