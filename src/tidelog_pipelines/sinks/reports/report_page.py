"""Writes a report as one HTML page, without scripts, fonts or network access."""

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from html import escape
from pathlib import Path

from tidelog_pipelines.sinks.reports.charts import (
    TimeAxis,
    clock,
    count,
    duration,
    failover_durations,
    isr_time_line,
    lag_heat_map,
)
from tidelog_pipelines.sinks.reports.report_model import Report

STYLE = Path(__file__).with_name("report.css")
LISTED = 12


def page(report: Report) -> str:
    axis = TimeAxis(report.start_ms, report.end_ms)
    parts = [
        _header(report),
        _figures(report),
        _time_line(report, axis),
        _failovers(report, axis),
        _lag(report, axis),
        f'<div class="pair">{_causes(report)}{_flapping(report)}</div>',
        f'<div class="pair">{_furthest(report)}{_days(report)}</div>',
        "<footer>Times are UTC. Point at an element to read its details.</footer>",
    ]
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        '<meta name="color-scheme" content="light dark">'
        f"<title>{escape(report.title)}</title><style>{STYLE.read_text()}</style></head>\n<body>\n"
        + "\n".join(parts)
        + "\n</body></html>\n"
    )


def _header(report: Report) -> str:
    start, end = (datetime.fromtimestamp(ms / 1000, UTC) for ms in (report.start_ms, report.end_ms))
    same_day = start.date() == end.date()
    until = f"{end:%H:%M}" if same_day else f"{end.day} {end:%B}, {end:%H:%M}"
    when = f"{start.day} {start:%B %Y}, {start:%H:%M} to {until}"
    what = f"{_many(report.partitions, 'partition')} on {_many(report.brokers, 'broker')}"
    return (
        f"<header><div><h1>{escape(report.title)}</h1>"
        f'<p class="when">{when} &middot; {what}</p></div>'
        f'<div class="state{"" if report.is_well else " bad"}">{_state(report)}</div></header>'
    )


def _state(report: Report) -> str:
    if report.leaderless_now:
        return f"{_many(report.leaderless_now, 'partition')} without a leader now"
    if report.under_now:
        return f"{_many(report.under_now, 'partition')} under-replicated now"
    return "All partitions are fully replicated now"


def _figures(report: Report) -> str:
    worst = max((row.p99 for row in report.lag_rows), default=0)
    slowest = report.slowest_failover_ms
    figures = [
        (f"{report.writable_percent:.4g}<small>%</small>", "of the time partitions took writes"),
        (
            _with_unit(duration(report.under_minutes * 60_000)),
            "under-replicated, all partitions together",
        ),
        (
            count(report.failovers_in_all),
            f"failovers, the slowest {duration(slowest)}" if slowest else "failovers",
        ),
        (count(report.shrinks), "times a replica fell out of sync"),
        (count(worst), "records behind: the worst follower&rsquo;s 99th percentile"),
    ]
    cards = "".join(f'<div class="figure"><b>{b}</b><span>{s}</span></div>' for b, s in figures)
    return f'<div class="figures">{cards}</div>'


def _with_unit(length: str) -> str:
    number, _, unit = length.partition(" ")
    return f"{number}<small>{unit}</small>"


def _time_line(report: Report, axis: TimeAxis) -> str:
    shown = sum(line.partitions for line in report.lines)
    note = f"The {shown} partitions with the most faults, of {report.partitions}."
    if shown == report.partitions:
        note = "Every partition, the worst first."
    if any(line.partitions > 1 for line in report.lines):
        note += " Internal topics have one line each."
    legend = _legend(
        ("calm", "all replicas in sync"),
        ("under", "under-replicated"),
        ("unwritable", "below min.insync.replicas: refuses acks=all"),
        ("leaderless", "no leader"),
    ).replace("</div>", '<span><i class="gem"></i>a new leader</span></div>')
    plot = isr_time_line(report.lines, report.failovers, axis)
    return _section("In-sync replicas", note, plot + legend)


def _failovers(report: Report, axis: TimeAxis) -> str:
    if not report.failovers:
        return _section("Failovers", "", '<p class="none">No leader was lost.</p>')
    note = (
        "How long a partition had no leader, from the last sign of life of the old leader to the "
        "election of the new one; the scale is logarithmic."
    )
    rows = [
        (
            escape(one.partition),
            clock(one.elected_ms, seconds=True),
            f"{one.leader_before} &rarr; {one.leader}",
            escape(one.reason) + ("" if one.is_clean else ", unclean"),
            "handed over" if one.is_handover else duration(one.duration_ms),
        )
        for one in report.failovers[:LISTED]
    ]
    listed = _table(("partition", "elected", "leader", "reason", "took"), rows, numbers=(4,))
    return _section("Failovers", note, failover_durations(report.failovers, axis) + listed)


def _lag(report: Report, axis: TimeAxis) -> str:
    if not report.lag_cells:
        return _section("Lag", "", '<p class="none">No follower was seen.</p>')
    most = max(cell.lag for cell in report.lag_cells)
    legend = (
        '<div class="legend"><span>0&ensp;<i class="scale"></i>'
        f"{count(most)} records behind (by powers of ten)</span></div>"
    )
    note = "The lag of each broker&rsquo;s slowest replica behind its leader."
    return _section("Lag", note, lag_heat_map(report.lag_cells, report.lag_buckets, axis) + legend)


def _causes(report: Report) -> str:
    most = max((one.times for one in report.causes), default=1)
    rows = [
        (
            escape(one.cause),
            f"broker {one.broker}",
            f'<span class="bar" style="width:{max(60 * one.times / most, 2):.0f}px"></span>',
            f"{one.times:,}",
        )
        for one in report.causes[:LISTED]
    ]
    heads = ("what happened", "to", "", "times")
    return _section("Top causes", "", _table(heads, rows, numbers=(3,)))


def _flapping(report: Report) -> str:
    rows = [
        (
            escape(one.partition),
            f"broker {one.broker}",
            f"{clock(one.began_ms)} to {clock(one.ended_ms)}",
            escape(one.reason),
            f"{one.leaves:,}",
        )
        for one in report.flaps[:LISTED]
    ]
    heads = ("partition", "replica", "when", "reason", "left")
    return _section("Flapping", "", _table(heads, rows, numbers=(4,)))


def _furthest(report: Report) -> str:
    rows = [
        (
            escape(one.partition),
            f"broker {one.broker}",
            count(one.p50),
            count(one.p99),
            duration(one.most_ms),
        )
        for one in report.lag_rows[:LISTED]
    ]
    heads = ("partition", "follower", "median", "99 %", "longest")
    return _section("Furthest behind", "", _table(heads, rows, numbers=(2, 3, 4)))


def _days(report: Report) -> str:
    rows = [
        (
            one.day,
            f"{one.available_percent:.3f} %",
            f"{one.writable_percent:.3f} %",
            f"{one.fully_replicated_percent:.3f} %",
        )
        for one in report.days[-LISTED:]
    ]
    heads = ("day", "had a leader", "took writes", "fully replicated")
    return _section("Availability", "", _table(heads, rows, numbers=(1, 2, 3)))


def _section(title: str, note: str, body: str) -> str:
    paragraph = f'<p class="note">{note}</p>' if note else ""
    return f"<section><h2>{title}</h2>{paragraph}{body}</section>"


def _legend(*entries: tuple[str, str]) -> str:
    marks = "".join(
        f'<span><i style="background:var(--{name})"></i>{meaning}</span>'
        for name, meaning in entries
    )
    return f'<div class="legend">{marks}</div>'


def _table(heads: Sequence[str], rows: Iterable[Sequence[str]], numbers: Sequence[int] = ()) -> str:
    def cells(tag: str, row: Sequence[str]) -> str:
        return "".join(
            f"<{tag}{' class=n' if column in numbers else ''}>{cell}</{tag}>"
            for column, cell in enumerate(row)
        )

    body = "".join(f"<tr>{cells('td', row)}</tr>" for row in rows)
    if not body:
        return '<p class="none">None.</p>'
    return f"<table><tr>{cells('th', heads)}</tr>{body}</table>"


def _many(number: int, what: str) -> str:
    return f"{number:,} {what}{'' if number == 1 else 's'}"
