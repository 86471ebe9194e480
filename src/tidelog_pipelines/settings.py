"""The settings of a job: a frozen dataclass, filled from flags, a TOML file and the environment.

Every field made with `setting` is a flag, `--like-this`, and a key of the file, `like-this`. A flag
overrides the file, and the file overrides the environment. The module uses only the standard
library, because a job must also start under spark-submit on a minimal machine.
"""

import argparse
import dataclasses
import os
import re
import tomllib
from collections.abc import Sequence
from dataclasses import dataclass, field
from difflib import get_close_matches
from typing import Any, TypeVar, get_args, get_origin, get_type_hints

from tidelog_pipelines.failures import JobFailed

S = TypeVar("S", bound="SparkSettings")
REQUIRED: Any = dataclasses.MISSING
SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:/")
TIME = re.compile(
    r"(interval\s+)?"
    r"(\d+(\.\d+)?\s+(year|month|week|day|hour|minute|second|millisecond|microsecond)s?\s*)+",
    re.IGNORECASE,
)


def setting(
    default: Any = REQUIRED,
    *,
    meaning: str,
    metavar: str | None = None,
    choices: Sequence[str] = (),
    env: str | None = None,
) -> Any:
    """A dataclass field that is also a flag. A flag without a default is required."""
    metadata = {"meaning": meaning, "metavar": metavar, "choices": tuple(choices), "env": env}
    return field(default=default, metadata=metadata)


MOST_CLUSTERING_COLUMNS = 4


def clustering(listed: str) -> tuple[str, ...]:
    """The columns of --cluster-by."""
    columns = tuple(filter(None, map(str.strip, listed.split(","))))
    check_clustering(columns)
    return columns


def check_clustering(columns: Sequence[str]) -> None:
    """Raise ValueError if there are too many columns to cluster by, or a column occurs twice."""
    if len(columns) > MOST_CLUSTERING_COLUMNS or len(set(columns)) < len(columns):
        raise ValueError(
            f"a table is clustered by at most {MOST_CLUSTERING_COLUMNS} different columns, not by "
            f"{', '.join(columns)}"
        )


def like(kind: type["SparkSettings"], name: str) -> Any:
    """A field with the default and the help text of another job's setting."""
    (found,) = (one for one in dataclasses.fields(kind) if one.name == name)
    return field(default=found.default, metadata=found.metadata)


@dataclass(frozen=True, kw_only=True)
class SparkSettings:
    """The settings of every job: where Spark runs, and how much it logs."""

    master: str = setting(
        "",
        metavar="URL",
        meaning="Spark's master: local[*] (the default), spark://HOST:PORT, yarn, k8s://...",
    )
    remote: str = setting(
        "", metavar="sc://HOST:PORT", meaning="a Spark Connect server, instead of --master"
    )
    conf: tuple[str, ...] = setting(
        (), metavar="KEY=VALUE", meaning="a configuration of Spark; may be given several times"
    )
    driver_memory: str = setting(
        "",
        metavar="SIZE",
        meaning="the memory of Spark's driver, such as 4g; by default a quarter of the machine's, "
        "1g to 8g",
    )
    log_level: str = setting(
        "OFF",
        choices=("OFF", "ERROR", "WARN", "INFO", "DEBUG"),
        meaning="how much of Spark's own log to show on stderr",
    )

    def __post_init__(self) -> None:
        for one in dataclasses.fields(self):
            # An empty --out, as from an unset variable of a shell, would be the working directory.
            if one.default is REQUIRED and getattr(self, one.name) == "":
                raise ValueError(f"{_flag(one.name)} is empty")
        if self.driver_memory and not MEMORY.fullmatch(self.driver_memory):
            raise ValueError(f"--driver-memory: {self.driver_memory!r} is not a size such as 4g")


@dataclass(frozen=True, kw_only=True)
class KafkaSettings(SparkSettings):
    """The settings of every job that uses a cluster."""

    bootstrap_server: str = setting(
        "127.0.0.1:9092",
        metavar="HOST:PORT,...",
        env="TIDELOG_BOOTSTRAP_SERVER",
        meaning="where to find the cluster",
    )
    kafka: tuple[str, ...] = setting(
        (),
        metavar="KEY=VALUE",
        meaning="a configuration of the Kafka clients, such as security.protocol=SSL",
    )


MEMORY = re.compile(r"[1-9]\d*[kmgt]b?", re.IGNORECASE)


def parse(
    kind: type[S], job: str, arguments: Sequence[str], about: str, group: str = "pipeline"
) -> S:
    """Parse a command line. An invalid setting ends the process with one sentence and status 2."""
    parser = _parser(kind, f"tidelog {group} {job}", about)
    found, unknown = parser.parse_known_args(arguments)
    if unknown:
        known = [_flag(one.name) for one in dataclasses.fields(kind)]
        parser.error(f"unrecognized arguments: {' '.join(unknown)}{_near(unknown, known)}")
    flags = vars(found)
    config = flags.pop("config", None)
    values = environment(kind) | (_file(kind, config) if config else {}) | flags
    missing = [
        one.name
        for one in dataclasses.fields(kind)
        if one.default is REQUIRED and one.name not in values
    ]
    if missing:
        parser.error("missing: " + ", ".join(_flag(name) for name in missing))
    try:
        return kind(**values)
    except ValueError as error:
        parser.error(str(error))


def _near(unknown: Sequence[str], known: Sequence[str]) -> str:
    """A suggestion for the first mistyped flag; empty if no flag is similar."""
    for word in unknown:
        near = get_close_matches(word.partition("=")[0], known, 1)
        if word.startswith("--") and near:
            return f" (did you mean {near[0]}?)"
    return ""


def located(path: str) -> str:
    """An absolute path, because the JVM may have another working directory."""
    return path.rstrip("/") if has_scheme(path) else os.path.abspath(path)


def has_scheme(path: str) -> bool:
    """Whether a path names its file system, as `s3a://...` and `dbfs:/...` do."""
    return SCHEME.match(path) is not None


def pairs(entries: Sequence[str], flag: str) -> dict[str, str]:
    """`key=value` entries as a dictionary. The value may contain further equals signs."""
    found = {}
    for entry in entries:
        key, equals, value = entry.partition("=")
        if not equals or not key:
            raise JobFailed(f"{flag}: {entry!r} is not key=value.")
        found[key] = value
    return found


def check_times(**values: str) -> None:
    """Raise ValueError for values that Spark would not accept as a duration."""
    for name, value in values.items():
        if not TIME.fullmatch(value):
            raise ValueError(f"{_flag(name)}: {value!r} is not a time such as '10 seconds'")


def _flag(name: str) -> str:
    return "--" + name.replace("_", "-")


def _parser(kind: type[S], program: str, about: str) -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog=program,
        description=about,
        argument_default=argparse.SUPPRESS,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    parser.add_argument(
        "--config", metavar="FILE", help="a TOML file with these settings, without the dashes"
    )
    types = get_type_hints(kind)
    # A job's own settings come first, the shared settings last.
    own = [f for f in dataclasses.fields(kind) if f.name in kind.__annotations__]
    shared = [f for f in dataclasses.fields(kind) if f.name not in kind.__annotations__]
    for one in [*own, *shared]:
        parser.add_argument(_flag(one.name), **_argument(one, types[one.name]))
    return parser


def _argument(one: dataclasses.Field[Any], kind: Any) -> dict[str, Any]:
    help_text = one.metadata["meaning"]
    if one.default not in (REQUIRED, "", (), False, None):
        help_text += f" ({one.default})"
    if kind is bool:
        return {"action": argparse.BooleanOptionalAction, "help": help_text}
    argument: dict[str, Any] = {"help": help_text, "metavar": one.metadata["metavar"]}
    if one.metadata["choices"]:
        argument |= {"choices": one.metadata["choices"], "metavar": None}
    if get_origin(kind) is tuple:
        argument |= {"action": "extend", "nargs": 1}
    return argument | {"type": _scalar(kind)}


def _scalar(kind: Any) -> Any:
    """The type of a value, or of a tuple's members."""
    return get_args(kind)[0] if get_origin(kind) is tuple else kind


def environment(kind: type[S]) -> dict[str, Any]:
    """The settings in the environment variables."""
    found = {}
    for one in dataclasses.fields(kind):
        name = one.metadata.get("env")
        if name and name in os.environ:
            found[one.name] = os.environ[name]
    return found


def _file(kind: type[S], path: str) -> dict[str, Any]:
    try:
        with open(path, "rb") as file:
            entries = tomllib.load(file)
    except tomllib.TOMLDecodeError as error:
        raise JobFailed(f"{path} is not TOML: {error}.") from None
    types, values = get_type_hints(kind), {}
    known = {one.name.replace("_", "-"): one for one in dataclasses.fields(kind)}
    for key, value in entries.items():
        one = known.get(key)
        if one is None:
            raise JobFailed(f"{path}: there is no setting {key!r}; there are {', '.join(known)}.")
        name = f"{path}: {key}"
        values[one.name] = typed(name, value, types[one.name], one.metadata["choices"])
    return values


def typed(name: str, value: Any, kind: Any, choices: Sequence[str]) -> Any:
    """Check the type of a setting's value. Raises JobFailed with the name of the setting."""
    scalar, is_list = _scalar(kind), get_origin(kind) is tuple
    if is_list and not isinstance(value, list):
        value = [value]
    members = value if is_list else [value]
    if scalar is float:
        members = [float(member) if type(member) is int else member for member in members]
    if not all(type(member) is scalar for member in members):
        raise JobFailed(f"{name} takes {scalar.__name__}, not {value!r}.")
    if choices and not set(members) <= set(choices):
        raise JobFailed(f"{name} is one of {', '.join(choices)}, not {value!r}.")
    return tuple(members) if is_list else members[0]
