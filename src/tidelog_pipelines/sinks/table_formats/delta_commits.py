"""Reads commits of a Delta table from the files of its log, without Spark.

By Delta's protocol, each commit is a file `_delta_log/VERSION.json` with one action per line. A
commit that a writer has described has an action `commitInfo` with that description.
"""

import json
from pathlib import Path
from typing import Any

VERSION_DIGITS = 20
NEWEST = 3
"""How many commits other writers may have made after the commit that is looked for."""


def rows_of_commit(table: Path, commit: str) -> int | None:
    """How many rows the commit with this `userMetadata` has added.

    0 if the commit is not among the newest. None if the log cannot be read here.
    """
    try:
        files = [file for file in (table / "_delta_log").iterdir() if _is_commit(file)]
        for file in sorted(files, reverse=True)[:NEWEST]:
            found = _commit_info(file)
            if found.get("userMetadata") == commit:
                return int((found.get("operationMetrics") or {}).get("numOutputRows", 0))
    except (OSError, ValueError):
        return None
    return 0 if files else None


def _is_commit(file: Path) -> bool:
    return file.suffix == ".json" and file.stem.isdigit() and len(file.stem) == VERSION_DIGITS


def _commit_info(file: Path) -> dict[str, Any]:
    with file.open(encoding="utf-8") as lines:
        for line in lines:
            if line.startswith('{"commitInfo"'):
                found = json.loads(line)["commitInfo"]
                return found if isinstance(found, dict) else {}
    return {}
