"""Runs `tidelog serve`, without click if the only options are --config and --override.

Importing click would delay the start of a broker by a tenth of a second, and take 8 MB of memory.
"""

from collections.abc import Mapping

from tidelog.clusters.node_settings import load_settings


def plain_form(arguments: list[str]) -> tuple[str, dict[str, str]] | None:
    """The config file and the overrides; None if click must parse the arguments."""
    config: str | None = None
    overrides: dict[str, str] = {}
    rest = iter(arguments)
    for name in rest:
        value = next(rest, None)
        if name == "--config" and value is not None and config is None:
            config = value
        elif name == "--override" and value is not None and "=" in value:
            key, _, text = value.partition("=")
            overrides[key.strip()] = text.strip()
        else:
            return None
    return None if config is None else (config, overrides)


def serve(config: str, overrides: Mapping[str, str]) -> int:
    """Run the node until it has stopped, and return its exit status."""
    settings = load_settings(config, overrides)
    from tidelog.runtime.server import run

    return run(settings)
