"""Compare two versions of Tidelog, or two systems, under the same load at the same time.

    bench/paired --a main --b HEAD --load small
    bench/paired --a kafka --b . --load bulk --windows 4

A side is a git revision, `.` for the working tree, `kafka`, or a TOML file of the duel. Both
clusters, of three brokers each, run all the time. With the load `small`, both get the same number
of requests per second, with one record each and acks=all. With `bulk`, both get records as fast as
they accept them, in turns: A B, B A, A B, and so on. A noisy machine then affects both sides alike,
so the ratio of a window is reliable where single figures are not. The script prints the median of
the ratios B / A, with the lowest and the highest.
"""

import argparse
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from multiprocessing import get_context
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

ROOT = Path(__file__).resolve().parents[1]
DUEL = Path(os.environ.get("DUEL", ROOT.parent / "shared" / "duel"))
if not (DUEL / "duel.py").exists():
    sys.exit(f"bench: the duel is not in {DUEL}; say where it is with DUEL=DIRECTORY")
sys.path.insert(0, str(DUEL))

import procs  # noqa: E402  the duel's modules are on the path only now
from confluent_kafka import Producer  # noqa: E402
from load import QUIET, create, delete, pump  # noqa: E402
from memory import await_deletions, fill_page_cache  # noqa: E402
from systems import Settings, System  # noqa: E402
from systems import load as load_system  # noqa: E402

TOPIC, PARTITIONS, COPIES = "paired", 6, 3
PORTS_APART = 1_000
WARM_WINDOWS = 1

Figures = dict[str, float]
"""The figures of one side in one window, by name with unit. Lower or higher is not judged."""


class Side(NamedTuple):
    name: str
    system: System


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--a", default="main", metavar="SIDE")
    parser.add_argument("--b", default=".", metavar="SIDE")
    parser.add_argument("--load", choices=sorted(LOADS), default="small")
    parser.add_argument("--windows", type=int, default=8)
    parser.add_argument("--seconds", type=float, default=5, help="of one window")
    parser.add_argument("--rate", type=int, default=1_000, help="requests/s of the load small")
    parser.add_argument(
        "--size", type=int, default=1_024, help="bytes of a record of the load bulk"
    )
    parser.add_argument("--work", type=Path, default=ROOT / ".cache/bench/paired")
    parser.add_argument("--base-port", type=int, default=21_000)
    parser.add_argument("--json", type=Path, help="write all figures to this file")
    options = parser.parse_args()
    options.work.mkdir(parents=True, exist_ok=True)
    sides = [
        Side(name, started(name, label, options, place))
        for place, (name, label) in enumerate([(options.a, "a"), (options.b, "b")])
    ]
    try:
        windows = [
            window(sides, options, number) for number in range(-WARM_WINDOWS, options.windows)
        ]
    finally:
        for side in sides:
            side.system.stop()
    windows = windows[WARM_WINDOWS:]
    report(sides, windows, options)


# -- the two sides -------------------------------------------------------------------------------


def started(name: str, label: str, options: argparse.Namespace, place: int) -> System:
    """Start the cluster of one side."""
    libs = Path()
    if name == "kafka":
        found = subprocess.run(
            [ROOT / "tools/kafka-jars"], check=True, stdout=subprocess.PIPE, text=True
        )
        libs = Path(found.stdout.strip())
    settings = Settings(
        (options.work / label).resolve(), libs, options.base_port + place * PORTS_APART
    )
    known = name == "kafka" or name.endswith(".toml")
    system = load_system(name if known else str(described(name, label, options.work)), settings)
    print(f"starting {name} ...", file=sys.stderr, flush=True)
    system.start(3)
    create(system, TOPIC, PARTITIONS, COPIES)
    return system


def described(name: str, label: str, work: Path) -> Path:
    """The TOML file of a version of Tidelog, which runs in the environment of this checkout."""
    checkout = ROOT if name == "." else checked_out(name, work)
    python = [
        "env",
        f"PYTHONPATH={checkout / 'src'}",
        str(ROOT / ".venv/bin/python"),
    ]
    prepare = [*python, "bench/prepare.py", "--work", "{work}", "--nodes", "{n}"]
    serve = [*python, "-m", "tidelog.cli.main", "serve"]
    path = work / f"{label}.toml"
    path.write_text(
        'kind = "command"\n'
        f"name = {json.dumps(label)}\n"
        f"cwd = {json.dumps(str(checkout))}\n"
        f"prepare = {json.dumps([*prepare, '--base-port', '{base_port}'])}\n"
        "[broker]\n"
        f"argv = {json.dumps([*serve, '--config', '{work}/server-{id}.properties'])}\n"
    )
    return path


def checked_out(revision: str, work: Path) -> Path:
    """A working tree of the revision, which is kept for the next run."""
    found = subprocess.run(
        ["git", "rev-parse", "--verify", f"{revision}^{{commit}}"],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        text=True,
        check=False,
    )
    if found.returncode:
        sys.exit(f"bench: {revision} is no git revision, `.`, `kafka` or TOML file")
    commit = found.stdout.strip()
    tree = (work / f"tree-{commit[:12]}").resolve()
    if not tree.exists():
        subprocess.run(
            ["git", "worktree", "add", "--quiet", "--detach", str(tree), commit],
            cwd=ROOT,
            check=True,
        )
    return tree


# -- the loads -----------------------------------------------------------------------------------


def small(sides: list[Side], options: argparse.Namespace, number: int) -> list[Figures]:
    """Both sides at once, each from a client process of its own."""
    context = get_context("spawn")
    before = [procs.cpu_seconds(side.system.pids()) for side in sides]
    with context.Pool(len(sides)) as pool:
        asked = [
            pool.apply_async(send_singly, (side.system.bootstrap, options.rate, options.seconds))
            for side in sides
        ]
        acks = [one.get() for one in asked]
    figures = []
    for side, busy, took in zip(sides, before, acks, strict=True):
        spent = procs.cpu_seconds(side.system.pids()) - busy
        took.sort()
        figures.append(
            {
                "broker CPU per record, us": 1e6 * spent / len(took),
                "ack p50, ms": took[len(took) // 2],
                "ack p99, ms": took[int(0.99 * len(took))],
            }
        )
    return figures


def send_singly(bootstrap: str, rate: int, seconds: float) -> list[float]:
    """Send one record per request at this rate; returns the milliseconds until each ack."""
    took: list[float] = []
    producer = Producer(
        {
            "bootstrap.servers": bootstrap,
            "acks": "all",
            "linger.ms": 0,
            "batch.num.messages": 1,
            **QUIET,
        }
    )
    producer.list_topics(TOPIC, timeout=10)

    def acked_since(sent_at: float) -> Callable[[Any, Any], None]:
        def acked(problem: Any, _message: Any) -> None:
            if problem is not None:
                raise RuntimeError(str(problem))
            took.append(1e3 * (time.perf_counter() - sent_at))

        return acked

    began, sent = time.perf_counter(), 0
    while (now := time.perf_counter()) - began < seconds:
        if sent < (now - began) * rate:
            producer.produce(
                TOPIC, bytes(100), partition=sent % PARTITIONS, on_delivery=acked_since(now)
            )
            sent += 1
            producer.poll(0)
        else:
            producer.poll(0.0005)
    if producer.flush(60):
        raise RuntimeError("some records were not acknowledged within a minute")
    return took


def bulk(sides: list[Side], options: argparse.Namespace, number: int) -> list[Figures]:
    """One side after the other, at full rate. The order changes with each window."""
    figures: dict[str, Figures] = {}
    order = sides if number % 2 == 0 else sides[::-1]
    for side in order:
        # Memory that was freed costs its next user more, so both sides get memory that is in use.
        await_deletions(options.work)
        fill_page_cache(options.work)
        topic = f"bulk-{abs(number)}-{number < 0}"
        create(side.system, topic, PARTITIONS, COPIES)
        busy = procs.cpu_seconds(side.system.pids())
        done = pump(side.system, topic, options.size, "all", options.seconds)
        busy = procs.cpu_seconds(side.system.pids()) - busy
        delete(side.system, topic)
        if done.failed:
            sys.exit(f"bench: {side.name} failed to take {done.failed} records")
        size = done.sent * options.size
        figures[side.system.name] = {
            "throughput, MB/s": size / 1e6 / done.seconds,
            "broker CPU, s/GB": busy / (size / 1e9),
        }
    return [figures[side.system.name] for side in sides]


LOADS = {"small": small, "bulk": bulk}


# -- windows and their figures -------------------------------------------------------------------


def window(sides: list[Side], options: argparse.Namespace, number: int) -> list[Figures]:
    figures = LOADS[options.load](sides, options, number)
    a, b = figures
    shown = ", ".join(f"{name} {a[name]:.4g} {b[name]:.4g} ({b[name] / a[name]:.2f})" for name in a)
    print(f"{'warm-up' if number < 0 else number + 1}: {shown}", file=sys.stderr, flush=True)
    return figures


def report(sides: list[Side], windows: list[list[Figures]], options: argparse.Namespace) -> None:
    a, b = (side.name for side in sides)
    print(f"| {options.load} | {a} | {b} | {b} / {a}, median (lowest to highest) |")
    print("|---|---|---|---|")
    for name in windows[0][0]:
        ratios = [one[name] / other[name] for other, one in windows]
        left, right = (median(pair[place][name] for pair in windows) for place in (0, 1))
        spread = f"{min(ratios):.2f} to {max(ratios):.2f}, n={len(ratios)}"
        print(f"| {name} | {left:.4g} | {right:.4g} | {median(ratios):.2f} ({spread}) |")
    if options.json is not None:
        found = {"a": a, "b": b, "load": options.load, "windows": windows}
        options.json.write_text(json.dumps(found, indent=1))


if __name__ == "__main__":
    main()
