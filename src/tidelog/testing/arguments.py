"""Checks the arguments of clusters and topics before any node starts.

Every error is one sentence that names the wrong argument and the valid arguments.
"""

from collections.abc import Callable, Collection, Mapping
from difflib import get_close_matches
from inspect import Parameter, signature
from typing import Any, NamedTuple

from tidelog.config.keys.broker_keys import BROKER_KEYS
from tidelog.config.keys.ignored_keys import IGNORED_KEYS, IGNORED_PREFIXES
from tidelog.config.keys.topic_keys import TOPIC_KEYS

PROPERTIES = frozenset({*BROKER_KEYS, *IGNORED_KEYS, "broker.id"})
"""The broker properties of Kafka and of Tidelog."""

TOPIC_CONFIGS = frozenset(key.replace(".", "_") for key in TOPIC_KEYS)
"""Topic configurations as Python arguments."""


class MarkerArguments(NamedTuple):
    """The arguments that a pytest marker takes, from the signature of a function."""

    names: tuple[str, ...]
    positional: tuple[str, ...]
    has_configs: bool
    """Whether the marker also takes topic configurations."""

    @classmethod
    def of(cls, function: Callable[..., Any], without: Collection[str] = ()) -> "MarkerArguments":
        taken = [one for one in signature(function).parameters.values() if one.name not in without]
        return cls(
            tuple(one.name for one in taken if one.kind is not Parameter.VAR_KEYWORD),
            tuple(one.name for one in taken if one.kind is Parameter.POSITIONAL_OR_KEYWORD),
            any(one.kind is Parameter.VAR_KEYWORD for one in taken),
        )

    def bind(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> dict[str, Any]:
        """The arguments by name; raises ValueError if the marker does not take them."""
        known = ", ".join(self.names)
        if len(args) > len(self.positional):
            raise ValueError(
                f"{len(args)} positional arguments are too many; the arguments are {known}"
            )
        bound = dict(zip(self.positional, args, strict=False))
        for name, value in kwargs.items():
            if name in bound:
                raise ValueError(f"{name!r} is given twice")
            if name not in self.names and not (self.has_configs and name in TOPIC_CONFIGS):
                also = ", and topic configurations with _ for ." if self.has_configs else ""
                near = near_match(name, {*self.names, *(TOPIC_CONFIGS if also else ())})
                raise ValueError(f"there is no argument {name!r}{near}; there are {known}{also}")
            bound[name] = value
        return bound


def checked_properties(argument: str, given: Mapping[str, object]) -> dict[str, str]:
    """The properties as text; raises ValueError if a name is not a broker property."""
    for name in given:
        if name not in PROPERTIES and not name.startswith(tuple(IGNORED_PREFIXES)):
            near = near_match(name, PROPERTIES)
            raise ValueError(f"{argument}: {name!r} is not a broker property{near}")
    return {name: _text(value) for name, value in given.items()}


def near_match(name: str, known: Collection[str]) -> str:
    found = get_close_matches(name, sorted(known), 1)
    return f" (did you mean {found[0]!r}?)" if found else ""


def _text(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
