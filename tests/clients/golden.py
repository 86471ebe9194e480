"""Answers recorded from Apache Kafka: a JSON file per API, one entry per range of versions."""

import json
from pathlib import Path
from typing import Any

DIRECTORY = Path(__file__).parent / "golden"

Transcript = list[Any]


def load(api: str) -> dict[str, dict[int, Transcript]]:
    """The transcripts of an API: case -> version -> transcript."""
    path = DIRECTORY / f"{api}.json"
    if not path.exists():
        return {}
    found: dict[str, dict[int, Transcript]] = {}
    for name, by_range in json.loads(path.read_text()).items():
        for versions, transcript in by_range.items():
            low, _, high = versions.partition("-")
            for version in range(int(low), int(high or low) + 1):
                found.setdefault(name, {})[version] = transcript
    return found


def save(api: str, case: str, transcripts: dict[int, Transcript]) -> None:
    path = DIRECTORY / f"{api}.json"
    known = json.loads(path.read_text()) if path.exists() else {}
    known[case] = _merged(transcripts)
    path.write_text(_pretty(dict(sorted(known.items()))))


def _pretty(known: dict[str, dict[str, Transcript]]) -> str:
    """JSON with one answer per line, so that a diff has one line per changed answer."""
    cases = []
    for case, by_range in known.items():
        ranges = []
        for versions, transcript in by_range.items():
            answers = ",\n".join(f"   {json.dumps(answer)}" for answer in transcript)
            ranges.append(f"  {json.dumps(versions)}: [\n{answers}\n  ]")
        cases.append(f" {json.dumps(case)}: {{\n" + ",\n".join(ranges) + "\n }")
    return "{\n" + ",\n".join(cases) + "\n}\n"


def _merged(transcripts: dict[int, Transcript]) -> dict[str, Transcript]:
    """Merge neighbouring versions with equal transcripts into one range."""
    ranges: list[tuple[int, int, Transcript]] = []
    for version in sorted(transcripts):
        if ranges and ranges[-1][1] == version - 1 and ranges[-1][2] == transcripts[version]:
            ranges[-1] = (ranges[-1][0], version, ranges[-1][2])
        else:
            ranges.append((version, version, transcripts[version]))
    return {f"{low}" if low == high else f"{low}-{high}": said for low, high, said in ranges}
