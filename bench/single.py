"""Compare one broker of Tidelog with one of Apache Kafka, in turns, on this machine.

    bench/run --out results            every measure, each once
    bench/run --measures start --repeats 5 --out results

The duel is a set of scripts in ../shared/duel or $DUEL. It starts the systems, makes the load with
librdkafka and prints the table. This module defines the measures for a single broker, with acks=1,
6 partitions and one replica. `--measures replicated` uses three brokers and three replicas, and
`--measures many` uses ten thousand partitions. The systems alternate inside each repeat, with fresh
data and a warm-up each time.
"""

import argparse
import contextlib
import fcntl
import json
import os
import platform
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
DUEL = Path(os.environ.get("DUEL", ROOT.parent / "shared" / "duel"))
if not (DUEL / "duel.py").exists():
    sys.exit(f"bench: the duel is not in {DUEL}; say where it is with DUEL=DIRECTORY")
sys.path.insert(0, str(DUEL))

import procs  # noqa: E402  the duel's modules are on the path only now
from confluent_kafka import Message, Producer  # noqa: E402
from load import QUIET, create, delete, drain, end_offsets, pump  # noqa: E402
from many import many as measure_many  # noqa: E402
from memory import await_deletions, fill_page_cache  # noqa: E402
from report import number, table  # noqa: E402
from systems import Settings, System, load  # noqa: E402

PARTITIONS = 6
KIB = 1024
Add = Callable[[str, float, str], None]


def warm(system: System, seconds: float) -> None:
    """Apply each kind of load before timing, because a JVM compiles code for about a minute."""
    kinds: tuple[tuple[str, int, float | None, float], ...] = (
        ("bulk", KIB, None, 0.4),
        ("small", 100, None, 0.3),
        ("single", KIB, 1000, 0.3),
    )
    for name, size, rate, share in kinds:
        create(system, f"warm-{name}", PARTITIONS, 1)
        pump(system, f"warm-{name}", size, "1", seconds * share, rate=rate)
        delete(system, f"warm-{name}")


def start(system: System, add: Add, _opt: argparse.Namespace) -> None:
    """Measure the time from exec to the first acknowledged write of a waiting client."""
    system.fresh(1)
    begin = time.perf_counter()
    system.launch()
    system.ready()
    create(system, "first", 1, 1)
    producer = Producer({"bootstrap.servers": system.bootstrap, "linger.ms": 0, **QUIET})
    producer.produce("first", b"x")
    if producer.flush(60):
        raise TimeoutError("no first ack")
    add("cold start to first acknowledged write", time.perf_counter() - begin, "s")
    time.sleep(3)
    add("memory after start", procs.rss_mib(system.pids()), "MiB")


def timed(system: System, add: Add, opt: argparse.Namespace, size: int, copies: int) -> None:
    """Write records of one size at full rate. With one replica, acks is 1; with more, it is all."""
    topic, acks = f"timed-{size}", "1" if copies == 1 else "all"
    create(system, topic, PARTITIONS, copies)
    await_deletions(opt.work / system.name)
    fill_page_cache(opt.work)
    busy = procs.cpu_seconds(system.pids())
    done = pump(system, topic, size, acks, opt.seconds)
    busy = procs.cpu_seconds(system.pids()) - busy
    arrived = end_offsets(system, topic, PARTITIONS)
    if done.failed or arrived != done.sent:
        raise AssertionError(f"{done.failed} failed, {arrived} of {done.sent} arrived")
    what = f"{size} B, acks=1" if copies == 1 else f"{size} B, acks=all, {copies} copies"
    add(f"produce {what}", arrived * size / 1e6 / done.seconds, "MB/s")
    add(f"produce {what}, records", arrived / done.seconds / 1000, "k rec/s")
    add(f"broker CPU, produce {what}", busy / (arrived * size / 1e9), "CPU s/GB")
    add(f"client CPU, produce {what}", 100 * done.client_cpu / done.seconds, "% of a core")
    delete(system, topic)


def produce(system: System, add: Add, opt: argparse.Namespace) -> None:
    system.start(1)
    warm(system, opt.warm)
    for size in (KIB, 100):
        timed(system, add, opt, size, copies=1)
    add("memory after load", procs.rss_mib(system.pids()), "MiB")


def replicated(system: System, add: Add, opt: argparse.Namespace) -> None:
    """Measure three brokers with three replicas and acks=all."""
    system.start(3)
    create(system, "warm", PARTITIONS, 3)
    pump(system, "warm", KIB, "all", opt.warm / 2)
    pump(system, "warm", 100, "all", opt.warm / 2)
    delete(system, "warm")
    for size in (KIB, 100):
        timed(system, add, opt, size, copies=3)
    add("memory of three brokers after load", procs.rss_mib(system.pids()), "MiB")


def latency(system: System, add: Add, opt: argparse.Namespace) -> None:
    """Measure the time from produce() to the acknowledgement, at 1,000 single records a second."""
    system.start(1)
    warm(system, opt.warm)
    rate, seconds = 1000, max(10, opt.seconds)
    create(system, "latency", PARTITIONS, 1)
    took: list[float] = []

    def send(producer: Producer, number: int) -> None:
        sent = time.perf_counter()

        def acked(problem: object, _message: Message) -> None:
            if problem is not None:
                raise AssertionError(problem)
            took.append(1000 * (time.perf_counter() - sent))

        producer.produce("latency", bytes(KIB), partition=number % PARTITIONS, on_delivery=acked)

    producer = Producer(
        {
            "bootstrap.servers": system.bootstrap,
            "acks": "1",
            "linger.ms": 0,
            # This is the default of the Java client. With librdkafka's default, a million, a broker
            # that handles one request of a connection at a time would fall further and further
            # behind.
            "max.in.flight.requests.per.connection": 5,
            **QUIET,
        }
    )
    busy, begin = procs.cpu_seconds(system.pids()), time.perf_counter()
    for n in range(int(rate * seconds)):
        while (early := begin + n / rate - time.perf_counter()) > 0:
            producer.poll(min(early, 0.001))
        send(producer, n)
    if producer.flush(60):
        raise TimeoutError("not all records were acknowledged")
    busy = procs.cpu_seconds(system.pids()) - busy
    timed = sorted(took[len(took) // 4 :])  # the first quarter is warm-up
    for share, name in ((0.5, "p50"), (0.99, "p99"), (0.999, "p99.9")):
        add(
            f"ack latency {name}, 1000 rec/s of 1 KiB, acks=1", timed[int(share * len(timed))], "ms"
        )
    add("broker CPU, 1000 rec/s of 1 KiB, acks=1", 100 * busy / seconds, "% of a core")


def consume(system: System, add: Add, opt: argparse.Namespace) -> None:
    system.start(1)
    for size, volume in ((KIB, 1_000_000_000), (100, 200_000_000)):
        topic = f"consume-{size}"
        create(system, topic, PARTITIONS, 1)
        done = pump(system, topic, size, "1", 6 * opt.seconds, limit=volume)
        for turn in range(4):
            busy = procs.cpu_seconds(system.pids())
            records, read, took = drain(system, topic, PARTITIONS, done.sent)
            busy = procs.cpu_seconds(system.pids()) - busy
            if records != done.sent:
                raise AssertionError(f"read {records} of {done.sent}")
            if turn:  # the first turn is warm-up
                add(f"consume {size} B", read / 1e6 / took, "MB/s")
                add(f"broker CPU, consume {size} B", busy / (read / 1e9), "CPU s/GB")


def many(system: System, add: Add, opt: argparse.Namespace) -> None:
    """Measure three nodes with very many partitions. Runs only if `--measures` names it."""
    measure_many(system, add, opt.partitions, opt.copies)


DEFAULT = (start, produce, latency, consume)
MEASURES = {measure.__name__: measure for measure in (*DEFAULT, replicated, many)}


@contextlib.contextmanager
def alone(lock: str | None, quiet: float) -> Iterator[None]:
    """Hold the lock file, if one is given, and wait until the machine is quiet."""
    with open(lock or os.devnull, "a") as handle:
        if lock:
            fcntl.flock(handle, fcntl.LOCK_EX)
        procs.wait_for_quiet(quiet, 15)
        yield


def options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--system", action="append", help="kafka, tidelog or a TOML file; default: the first two"
    )
    parser.add_argument("--measures", default=",".join(measure.__name__ for measure in DEFAULT))
    parser.add_argument("--partitions", type=int, default=10_000, help="for the measure many")
    parser.add_argument("--copies", type=int, default=3, help="for the measure many")
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--repeats", type=int, default=1)
    parser.add_argument("--seconds", type=float, default=10, help="of one run under load")
    parser.add_argument("--warm", type=float, default=60, help="seconds of load before timing")
    parser.add_argument("--work", type=Path, default=ROOT / ".cache" / "bench")
    parser.add_argument("--base-port", type=int, default=28100)
    parser.add_argument("--lock", default=os.environ.get("DUEL_LOCK"))
    parser.add_argument(
        "--quiet", type=float, default=15, help="start when others use less %% of a core"
    )
    return parser.parse_args()


class Results:
    """All values of a run. Each value is saved at once, in results.json and results.md."""

    def __init__(self, out: Path, systems: list[System], about: dict[str, object]) -> None:
        self.out, self.names, self.about = out, [system.name for system in systems], about
        self.values: dict[str, dict[str, dict[str, Any]]] = {}
        self.problems: list[str] = []
        out.mkdir(parents=True, exist_ok=True)

    def recorder(self, measure: str, system: System) -> Add:
        gauge = procs.Others()

        def add(row: str, value: float, unit: str) -> None:
            entry = self.values.setdefault(measure, {}).setdefault(
                row, {"unit": unit, "others": {}}
            )
            noise = round(gauge.percent())
            entry.setdefault(system.name, []).append(round(value, 4))
            entry["others"].setdefault(system.name, []).append(noise)
            print(f"{system.name}: {row} = {number(value)} {unit} [others {noise}%]", flush=True)
            self.save()

        return add

    def failed(self, what: str) -> None:
        self.problems.append(what)
        print(f"problem: {what}", file=sys.stderr, flush=True)
        self.save()

    def save(self) -> None:
        everything = {"about": self.about, "results": self.values, "problems": self.problems}
        (self.out / "results.json").write_text(json.dumps(everything, indent=1))
        told = "".join(f"\nProblem: {problem}\n" for problem in self.problems)
        (self.out / "results.md").write_text(table(self.values, self.names) + told)


def main() -> int:
    opt = options()
    libs = subprocess.run(
        [ROOT / "tools/kafka-jars"], check=True, stdout=subprocess.PIPE, text=True
    )
    settings = Settings(opt.work.resolve(), Path(libs.stdout.strip()), opt.base_port)
    own = {"tidelog": str(ROOT / "bench/tidelog.toml")}
    systems = [load(own.get(name, name), settings) for name in opt.system or ["kafka", "tidelog"]]
    about = {
        "when": time.strftime("%F %T %z"),
        "cores": os.cpu_count(),
        "kernel": platform.release(),
        "python": platform.python_version(),
        "kafka": settings.kafka_libs.name.rpartition("-")[2],
        "seconds": opt.seconds,
        "warm": opt.warm,
        "repeats": opt.repeats,
    }
    results = Results(opt.out, systems, about)
    for measure in opt.measures.split(","):
        for turn in range(opt.repeats):
            for system in systems if turn % 2 == 0 else list(reversed(systems)):
                try:
                    with alone(opt.lock, opt.quiet):
                        MEASURES[measure](system, results.recorder(measure, system), opt)
                except Exception as problem:  # a failure is recorded, and the other measures run
                    results.failed(f"{system.name}, {measure}: {type(problem).__name__}: {problem}")
                finally:
                    system.stop()
    print((opt.out / "results.md").read_text())
    return 1 if results.problems else 0


if __name__ == "__main__":
    sys.exit(main())
