"""The results of `tidelog whatif` as tables and sentences."""

from collections.abc import Callable, Iterable, Iterator, Sequence

from tidelog.cli.output.table import table
from tidelog.model.ids import Millis
from tidelog.sim.whatif.faults import FAULTS
from tidelog.sim.whatif.summary import WhatIfSummary

COLUMNS = """\
RUNS WITH LOSS  runs after which acknowledged records were missing
MEDIAN LOST     how many records were missing in such a run; WORST: in the worst run
UNAVAILABLE     the longest time without an acknowledgement in a run, as the median of all runs;
                P99: 99 of 100 runs did not exceed it"""
ASSUMPTIONS = """\
One producer writes 500 records a second to one partition, gives up a request after 3 s, and retries
unacknowledged records. Machines return after 4 to 8 s. Failures are detected as by `tidelog up`: a
dead process at once, a silent machine after 2 s."""


def details(summaries: Sequence[WhatIfSummary]) -> Iterator[str]:
    """The lines for one set of settings: a table with one row per fault, and conclusions."""
    first = summaries[0]
    yield f"{first.question.settings}: {first.runs} runs per fault"
    yield ""
    heads = ("FAULT", "RUNS WITH LOSS", "MEDIAN LOST", "WORST", "UNAVAILABLE", "P99")
    rows = [
        (
            one.question.fault,
            f"{share(one)} ({one.lossy})" if one.lossy else "none",
            str(one.median_lost) if one.lossy else "-",
            str(one.worst_lost) if one.lossy else "-",
            seconds(one.median_unavailable_ms),
            seconds(one.p99_unavailable_ms),
        )
        for one in summaries
    ]
    yield from table(heads, rows)
    yield ""
    yield COLUMNS
    yield ""
    yield from conclusions(summaries)


def conclusions(summaries: Sequence[WhatIfSummary]) -> Iterator[str]:
    """One sentence per fault, with a confidence bound."""
    for one in summaries:
        fault = one.question.fault
        if one.lossy:
            yield (
                f"{fault}: {one.lossy} of {one.runs} runs lost acknowledged records; "
                f"with 95 % confidence at most {one.bound:.1%} of such faults do."
            )
        else:
            yield (
                f"{fault}: 0 of {one.runs} runs lost anything; "
                f"with 95 % confidence fewer than {one.bound:.1%} of such faults do."
            )
        if one.stuck:
            yield f"{fault}: {one.stuck} runs did not have all replicas in sync after two minutes."
    if any(one.median_unavailable_ms is None for one in summaries):
        yield "With acks=0 a producer gets no answer, so the time without one is not known."
    yield ""
    yield ASSUMPTIONS


def matrix(summaries: Sequence[WhatIfSummary]) -> Iterator[str]:
    """The lines for many settings: tables for each replication factor, with a row per fault."""
    for factor in sorted({one.question.replication_factor for one in summaries}):
        some = [one for one in summaries if one.question.replication_factor == factor]
        yield f"replication.factor={factor}: runs that lost acknowledged records"
        yield from _grid(some, loss)
        yield ""
        yield f"replication.factor={factor}: records lost in such a run (median, worst)"
        yield from _grid(some, records)
        yield ""
        yield f"replication.factor={factor}: how long writes were unavailable (median, p99)"
        yield from _grid(some, wait)
        yield ""
    yield from _told_bound(summaries)
    yield ""
    yield ASSUMPTIONS


def _told_bound(summaries: Sequence[WhatIfSummary]) -> Iterator[str]:
    runs = summaries[0].runs
    safe = [one for one in summaries if not one.lossy]
    if safe:
        yield (
            f"{runs} runs each. Where it says 0, no run lost anything: with 95 % confidence fewer "
            f"than {safe[0].bound:.1%} of such faults do (3/{runs})."
        )
    yield "Columns: acks / min.insync.replicas."


def _grid(
    summaries: Sequence[WhatIfSummary], cell: Callable[[WhatIfSummary], str]
) -> Iterable[str]:
    settings = list(dict.fromkeys(_column(one) for one in summaries))
    found = {(one.question.fault, _column(one)): cell(one) for one in summaries}
    faults = [fault for fault in FAULTS if any(one.question.fault == fault for one in summaries)]
    rows = [[fault, *(found[fault, setting] for setting in settings)] for fault in faults]
    return table(["FAULT", *settings], rows)


def _column(summary: WhatIfSummary) -> str:
    return f"{summary.question.acks}/{summary.question.min_insync_replicas}"


def loss(summary: WhatIfSummary) -> str:
    return share(summary) if summary.lossy else "0"


def records(summary: WhatIfSummary) -> str:
    return f"{summary.median_lost} {summary.worst_lost}" if summary.lossy else "-"


def wait(summary: WhatIfSummary) -> str:
    if summary.median_unavailable_ms is None:
        return "-"
    return f"{seconds(summary.median_unavailable_ms)} {seconds(summary.p99_unavailable_ms)}"


def share(summary: WhatIfSummary) -> str:
    return f"{summary.share:.0%}" if summary.share >= 0.1 else f"{summary.share:.1%}"


def seconds(wait_ms: Millis | None) -> str:
    if wait_ms is None:
        return "-"
    return f"{wait_ms / 1000:.1f} s" if wait_ms >= 100 else f"{wait_ms} ms"
