"""The settings of a job as options of a Python function, and its errors as exceptions.

The option `like_this` corresponds to the flag `--like-this`. It has the same default, the same
checks and the same environment variable. So a new setting of a job is also a new option.
"""

import dataclasses
import inspect
import os
import re
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, TypeVar, get_origin, get_type_hints

from pyspark.sql.types import StructType

from tidelog_pipelines.failures import DETAILS, JobFailed, sentence_for
from tidelog_pipelines.settings import REQUIRED, S, environment, typed

F = TypeVar("F", bound=Callable[..., Any])


def settings_of(
    kind: type[S], options: Mapping[str, Any], names: Collection[str], **fixed: Any
) -> S:
    """The settings of a job, from its options.

    Raises JobFailed if an option is wrong or missing.
    """
    fields = {one.name: one for one in dataclasses.fields(kind) if one.name in names}
    types = get_type_hints(kind)
    values = {name: value for name, value in environment(kind).items() if name in fields}
    for name, value in options.items():
        if (one := fields.get(name)) is None:
            raise JobFailed(f"there is no option {name!r}; there are {', '.join(fields)}.")
        if value is not None:
            plain = _plain(value, types[name], one.metadata["metavar"] or "")
            values[name] = typed(name, plain, types[name], one.metadata["choices"])
    values |= fixed
    missing = [
        name for name, one in fields.items() if one.default is REQUIRED and name not in values
    ]
    if missing:
        raise JobFailed(f"an option is missing: {', '.join(missing)}.")
    with sentences():
        try:
            return kind(**values)
        except ValueError as error:
            raise JobFailed(f"{error}.") from None


def _plain(value: Any, kind: Any, metavar: str) -> Any:
    """Convert a Python value to the form that a flag or a file would give."""
    if isinstance(value, StructType):
        with sentences():  # Spark creates the text
            return value.toDDL()
    if get_origin(kind) is tuple:
        if isinstance(value, Mapping):
            return [f"{key}={_joined(one)}" for key, one in value.items()]
        many = value if isinstance(value, list | tuple) else [value]
        return [os.fspath(one) if isinstance(one, os.PathLike) else one for one in many]
    if isinstance(value, os.PathLike):
        return os.fspath(value)
    return _joined(value) if metavar.endswith(",...") else value


def _joined(value: Any) -> Any:
    """Join several names into one text, in the form of a flag's value."""
    many = isinstance(value, list | tuple)
    if many and all(isinstance(one, str | os.PathLike) for one in value):
        return ",".join(map(os.fspath, value))
    return value


FLAG = re.compile(r"(?<!\S)--([a-z]+(?:-[a-z]+)*)\b")


@contextmanager
def sentences() -> Iterator[None]:
    """Raise JobFailed in place of each error that has a sentence for the user.

    The sentence names options instead of flags.
    """
    try:
        yield
    except Exception as error:
        sentence = sentence_for(error)
        if sentence is None:
            raise
        told = _in_python(sentence.removesuffix(DETAILS))
        # Keep the original error as the cause, because it has the details. A JobFailed has no
        # further details, so it is not kept.
        raise JobFailed(told) from (None if isinstance(error, JobFailed) else error)


def _in_python(text: str) -> str:
    """Replace the flags in a text with the names of options."""
    return FLAG.sub(lambda flag: flag[1].replace("-", "_"), text)


def takes(kind: type[S], names: Collection[str]) -> Callable[[F], F]:
    """List the options behind `**options` in the signature and the help of a function."""

    def decorate(function: F) -> F:
        own = inspect.signature(function)
        before = [one for one in own.parameters.values() if one.kind is not one.VAR_KEYWORD]
        types = get_type_hints(kind)
        fields = [one for one in dataclasses.fields(kind) if one.name in names]
        after = [
            inspect.Parameter(
                one.name,
                inspect.Parameter.KEYWORD_ONLY,
                default=inspect.Parameter.empty if one.default is REQUIRED else one.default,
                annotation=types[one.name],
            )
            for one in fields
        ]
        function.__signature__ = own.replace(parameters=[*before, *after])  # type: ignore[attr-defined]
        meanings = [f"    {one.name}: {_in_python(one.metadata['meaning'])}" for one in fields]
        function.__doc__ = "\n".join([inspect.getdoc(function) or "", "", "Options:", *meanings])
        return function

    return decorate
