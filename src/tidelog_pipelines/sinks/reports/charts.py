"""The report's charts as SVG. The page's style sheet sets the colours for light and dark mode."""

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from html import escape
from math import log10

from tidelog_pipelines.sinks.reports.report_model import Failover, LagCell, Line

WIDTH = 1120
LABELS = 190
"""The width of the column of names to the left of the charts, in pixels."""
RIGHT = 16
ROW, GAP = 18, 6
HEAT_ROW, HEAT_GAP = 26, 3
AXIS = 28
LEVELS = 6
LEAST_SPAN = 1.6
"""The minimum width of a span in pixels, so that a short time without a leader is visible."""

LONGEST_NAME = 30
"""The number of characters of a name that fit to the left of the charts."""

DAY = 86_400
_STEPS_SECONDS = (
    *(5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 10_800, 21_600, 43_200),
    *(DAY, 2 * DAY, 7 * DAY),
)
_TICKS = 9


class TimeAxis:
    """Maps a time to a horizontal position."""

    def __init__(self, start_ms: int, end_ms: int) -> None:
        self.start_ms, self.end_ms = start_ms, max(end_ms, start_ms + 1)

    def x(self, ms: float) -> float:
        part = (ms - self.start_ms) / (self.end_ms - self.start_ms)
        return round(LABELS + min(max(part, 0.0), 1.0) * (WIDTH - LABELS - RIGHT), 1)

    def ticks(self) -> Iterator[tuple[float, str]]:
        seconds = (self.end_ms - self.start_ms) / 1000
        step = next((one for one in _STEPS_SECONDS if seconds / one <= _TICKS), _STEPS_SECONDS[-1])
        first = -(-self.start_ms // (step * 1000)) * step * 1000
        for ms in range(first, self.end_ms + 1, step * 1000):
            yield self.x(ms), clock(ms, with_day=step >= DAY, seconds=step < 60)

    def draw(self, height: float) -> str:
        marks = []
        for x, label in self.ticks():
            marks.append(f'<line class="grid" x1="{x}" x2="{x}" y1="0" y2="{height}"/>')
            marks.append(f'<text class="tick" x="{x}" y="{height + 18}">{label}</text>')
        return "".join(marks)


def clock(ms: int, *, with_day: bool = False, seconds: bool = False) -> str:
    moment = datetime.fromtimestamp(ms / 1000, UTC)
    if with_day:
        return f"{moment.day} {moment:%b}"
    return f"{moment:%H:%M:%S}" if seconds else f"{moment:%H:%M}"


def duration(ms: float | None) -> str:
    """A readable duration: 340 ms, 4.2 s, 3.5 min, 2.1 h."""
    if ms is None:
        return "unknown"
    if ms < 1000:
        return f"{ms:.0f} ms"
    if ms < 120_000:
        return f"{ms / 1000:.1f} s"
    return f"{ms / 60_000:.1f} min" if ms < 7_200_000 else f"{ms / 3_600_000:.1f} h"


def count(number: float) -> str:
    """A readable number: 950, 12.4 k, 3.1 M."""
    if number < 10_000:
        return f"{number:,.0f}"
    unit, name = (1000, "k") if number < 1_000_000 else (1_000_000, "M")
    return f"{number / unit:,.1f}".removesuffix(".0") + f" {name}"


def _svg(height: float, label: str, body: str) -> str:
    return (
        f'<svg viewBox="0 0 {WIDTH} {height}" role="img" aria-label="{escape(label)}">{body}</svg>'
    )


def _name(text: str, y: float) -> str:
    """The name of a row.

    A long name is shortened in the middle, because similar names usually differ at the end.
    """
    shown = text
    if len(text) > LONGEST_NAME:
        shown = f"{text[: LONGEST_NAME // 2]}…{text[-LONGEST_NAME // 2 :]}"
    return f'<text class="name" x="{LABELS - 12}" y="{y:.0f}">{escape(shown)}</text>'


def _title(text: str) -> str:
    return f"<title>{escape(text)}</title>"


def isr_time_line(lines: Sequence[Line], failovers: Sequence[Failover], axis: TimeAxis) -> str:
    """A row for each time line. The row is coloured while not all replicas are in sync."""
    height = len(lines) * (ROW + GAP)
    body = [axis.draw(height)]
    left, right = axis.x(axis.start_ms), axis.x(axis.end_ms)
    rows = {line.name: number * (ROW + GAP) for number, line in enumerate(lines)}
    for line in lines:
        y = rows[line.name]
        several = f" ({line.partitions})" if line.partitions > 1 else ""
        body.append(_name(line.name + several, y + 13))
        body.append(
            f'<rect class="full" x="{left}" y="{y}" width="{right - left:.1f}" '
            f'height="{ROW}" rx="3"/>'
        )
        for span in line.spans:
            x = axis.x(span.start_ms)
            width = max(axis.x(span.end_ms) - x, LEAST_SPAN)
            length = duration(span.end_ms - span.start_ms)
            tooltip = f"{span.partition}: {span.meaning} for {length} from "
            tooltip += clock(span.start_ms, seconds=True)
            body.append(
                f'<rect class="{span.kind}" x="{x}" y="{y}" width="{width:.1f}" height="{ROW}">'
                f"{_title(tooltip)}</rect>"
            )
    for one in failovers:
        if one.line in rows:
            body.append(_diamond(axis.x(one.elected_ms), rows[one.line] + ROW / 2, one))
    return _svg(height + AXIS, "in-sync replicas of each partition over time", "".join(body))


def _diamond(x: float, y: float, one: Failover) -> str:
    size = 5.5
    points = f"{x},{y - size} {x + size},{y} {x},{y + size} {x - size},{y}"
    return f'<polygon class="election" points="{points}">{_title(told(one))}</polygon>'


def told(one: Failover) -> str:
    """A failover as a sentence."""
    how = "" if one.is_clean else ", uncleanly"
    took = "" if one.duration_ms is None else f" after {duration(one.duration_ms)}"
    return (
        f"{one.partition}: broker {one.leader} took over from {one.leader_before} ({one.reason}"
        f"{how}) at {clock(one.elected_ms, seconds=True)}{took}"
    )


def failover_durations(failovers: Sequence[Failover], axis: TimeAxis) -> str:
    """One point for each failover: its time, and the time without a leader (log scale)."""
    height, top = 150.0, 12.0
    known = [one for one in failovers if one.duration_ms is not None]
    most = max([one.duration_ms or 0 for one in known] + [1000])
    top_power = len(str(most - 1))

    def y(ms: float) -> float:
        return round(height - (log10(max(ms, 1.0)) / top_power) * (height - top), 1)

    body = [axis.draw(height)]
    for power in range(top_power + 1):
        at = y(10**power)
        body.append(f'<line class="grid" x1="{LABELS}" x2="{WIDTH - RIGHT}" y1="{at}" y2="{at}"/>')
        label = duration(10**power).replace(".0 ", " ")
        body.append(_name(label, at + 4))
    for one in known:
        x, at = axis.x(one.elected_ms), y(one.duration_ms or 0)
        kind = "clean" if one.is_clean else "unclean"
        body.append(f'<line class="stem" x1="{x}" x2="{x}" y1="{at}" y2="{height}"/>')
        body.append(f'<circle class="{kind}" cx="{x}" cy="{at}" r="5">{_title(told(one))}</circle>')
    return _svg(height + AXIS, "failovers and how long they took", "".join(body))


def lag_heat_map(cells: Sequence[LagCell], buckets: int, axis: TimeAxis) -> str:
    """A row for each broker. A darker cell means a larger lag of the broker's slowest replica."""
    brokers = sorted({cell.broker for cell in cells})
    height = len(brokers) * (HEAT_ROW + HEAT_GAP)
    width = (WIDTH - LABELS - RIGHT) / max(buckets, 1)
    body = [axis.draw(height)]
    for number, broker in enumerate(brokers):
        y = number * (HEAT_ROW + HEAT_GAP) + HEAT_ROW * 0.66
        body.append(_name(f"broker {broker}", y))
    step = (axis.end_ms - axis.start_ms) / max(buckets, 1)
    most = max((cell.lag for cell in cells), default=0)
    for cell in cells:
        x = LABELS + cell.bucket * width
        y = brokers.index(cell.broker) * (HEAT_ROW + HEAT_GAP)
        moment = clock(round(axis.start_ms + cell.bucket * step))
        tooltip = f"broker {cell.broker} at {moment}: up to {cell.lag:,} records behind"
        body.append(
            f'<rect class="heat" fill-opacity="{opacity(cell.lag, most):.2f}" x="{x:.1f}" y="{y}" '
            f'width="{max(width - 1.2, 0.6):.1f}" height="{HEAT_ROW}" rx="1.5">'
            f"{_title(tooltip)}</rect>"
        )
    return _svg(height + AXIS, "how far followers lagged over time", "".join(body))


def opacity(lag: int, most: int) -> float:
    """The opacity of a cell. The scale is logarithmic, so that small lags also differ visibly."""
    if most <= 0:
        return 0.06
    return 0.06 + 0.94 * (log10(1 + lag) / log10(1 + most)) ** 2
