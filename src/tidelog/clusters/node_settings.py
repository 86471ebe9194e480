"""Reads a server.properties file, for the commands that have a file as an argument."""

import socket
from collections.abc import Mapping
from pathlib import Path

from tidelog.config.settings import BadSetting, BrokerSettings, parse_properties
from tidelog.model.user_error import UserError


def load_settings(config: str, overrides: Mapping[str, str]) -> BrokerSettings:
    """The settings in this file; `overrides` take precedence."""
    try:
        text = Path(config).read_text(encoding="utf-8")
    except UnicodeDecodeError:
        raise UserError(f"{config}: this is not a text file.") from None
    except OSError as error:
        raise UserError(f"{config}: {error.strerror}.") from None
    return settings_of(config, {**parse_properties(text), **overrides})


def settings_of(config: str, properties: Mapping[str, str]) -> BrokerSettings:
    """The settings in these properties; errors name the file `config`."""
    try:
        return BrokerSettings.from_properties(properties, socket.gethostname())
    except BadSetting as bad:
        raise UserError(f"{config}: {bad}.") from None
