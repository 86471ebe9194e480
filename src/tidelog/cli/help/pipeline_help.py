"""`tidelog pipeline JOB --help` and `tidelog tables run --help` without Spark.

Each job prints its own help, but importing a job also imports Spark. This module therefore replaces
the libraries that jobs import with placeholders, so that the help works before the libraries are
installed.
"""

import importlib.abc
import importlib.machinery
import runpy
import sys
from collections.abc import Sequence
from types import ModuleType
from typing import Any

from tidelog.cli.help.examples import EXAMPLES

PLACEHOLDERS = frozenset(
    {
        "confluent_kafka",
        "cramjam",
        "crc32c",
        "delta",
        "lz4",
        "numpy",
        "pandas",
        "pyarrow",
        "py4j",
        "pyspark",
        "zstandard",
    }
)


class _AnyAttribute(type):
    def __getattr__(cls, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return Placeholder


class Placeholder(metaclass=_AnyAttribute):
    """Replaces any name that a job imports: a base class, a function or an annotated type."""

    def __new__(cls, *arguments: object, **options: object) -> Any:
        return Placeholder

    def __class_getitem__(cls, item: object) -> Any:
        return cls


class _PlaceholderModule(ModuleType):
    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return Placeholder


class PlaceholderFinder(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Finds placeholders even if the libraries are installed, so that the help never differs."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        if fullname.partition(".")[0] not in PLACEHOLDERS:
            return None
        return importlib.machinery.ModuleSpec(fullname, self, is_package=True)

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> ModuleType:
        module = _PlaceholderModule(spec.name)
        module.__path__ = []
        return module

    def exec_module(self, module: ModuleType) -> None:
        pass


def print_help(module: str, command: str) -> None:
    """Run the job's module in this process with --help, and print an example below it."""
    sys.meta_path.insert(0, PlaceholderFinder())
    sys.argv[1:] = ["--help"]
    try:
        runpy.run_module(module, run_name="__main__", alter_sys=True)
    except SystemExit as end:
        if end.code:
            raise
    print(f"\nExample:\n  {EXAMPLES[command]}")


if __name__ == "__main__":
    print_help(sys.argv[1], sys.argv[2])
