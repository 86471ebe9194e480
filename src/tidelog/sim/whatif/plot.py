"""Writes the results of `tidelog whatif` as one HTML page, which loads no other file.

The page has one cell per fault and setting. The colour and the large number of a cell show the
share of runs that lost acknowledged records. The small number shows how long writes were
unavailable.
"""

from collections.abc import Iterator, Sequence
from html import escape

from tidelog.model.ids import Millis
from tidelog.sim.whatif.faults import FAULTS
from tidelog.sim.whatif.summary import WhatIfSummary

CELL_WIDTH, CELL_HEIGHT, LEFT, TOP = 104, 46, 170, 64

_STYLE = """
:root { color-scheme: light dark; --ink: #1d2733; --dim: #6b7785; --paper: #fbfcfd }
@media (prefers-color-scheme: dark) {
  :root { --ink: #e6ebf1; --dim: #93a0ae; --paper: #12171d }
}
body { font: 15px/1.5 system-ui, sans-serif; color: var(--ink); background: var(--paper);
  max-width: 72rem; margin: 2rem auto; padding: 0 1.25rem }
h1 { font-size: 1.5rem } h2 { font-size: 1.05rem; margin-top: 2rem }
p { color: var(--dim); max-width: 46rem } .grid { overflow-x: auto }
svg text { font: 12px system-ui, sans-serif; fill: var(--ink) }
svg .dim { fill: var(--dim) } svg .big { font-weight: 600; font-size: 14px; fill: #16202a }
svg .small { font-size: 11px; fill: #16202a; fill-opacity: .75 }
"""


def page(summaries: Sequence[WhatIfSummary]) -> str:
    """The HTML document."""
    runs = summaries[0].runs
    factors = sorted({one.question.replication_factor for one in summaries})
    grids = "".join(
        _grid(factor, [one for one in summaries if one.question.replication_factor == factor])
        for factor in factors
    )
    extra = summaries[0].question.settings.split(" ")[3:]
    with_extra = f" With {escape(' and '.join(extra))}." if extra else ""
    return (
        "<!doctype html><html lang='en'><meta charset='utf-8'>"
        "<meta name='viewport' content='width=device-width'>"
        f"<title>What do I lose if?</title><style>{_STYLE}</style>"
        "<h1>What do I lose if?</h1>"
        f"<p>{runs} simulated runs per cell.{with_extra} The large number is the share of runs "
        "that lost acknowledged records. The small number is the median time for which writes were "
        f"unavailable. Zero means that, with 95 % confidence, fewer than {3 / runs:.1%} of such "
        f"faults lose records.</p>{grids}</html>\n"
    )


def _grid(factor: int, summaries: Sequence[WhatIfSummary]) -> str:
    columns = list(
        dict.fromkeys((one.question.acks, one.question.min_insync_replicas) for one in summaries)
    )
    faults = [fault for fault in FAULTS if any(one.question.fault == fault for one in summaries)]
    width = LEFT + CELL_WIDTH * len(columns) + 8
    height = TOP + CELL_HEIGHT * len(faults) + 8
    parts = [
        f"<h2>replication.factor = {factor}</h2><div class='grid'>"
        f"<svg width='{width}' height='{height}' role='img'>"
    ]
    for place, (acks, minimum) in enumerate(columns):
        x = LEFT + CELL_WIDTH * place + CELL_WIDTH // 2
        parts.append(f"<text x='{x}' y='26' text-anchor='middle'>acks={acks}</text>")
        parts.append(
            f"<text class='dim' x='{x}' y='44' text-anchor='middle'>min ISR {minimum}</text>"
        )
    for row, fault in enumerate(faults):
        y = TOP + CELL_HEIGHT * row
        parts.append(
            f"<text x='0' y='{y + 27}'>{fault}<title>{escape(FAULTS[fault].meaning)}</title></text>"
        )
    for one in summaries:
        place = columns.index((one.question.acks, one.question.min_insync_replicas))
        parts += _cell(one, place, faults.index(one.question.fault))
    return "".join(parts) + "</svg></div>"


def _cell(summary: WhatIfSummary, column: int, row: int) -> Iterator[str]:
    x, y = LEFT + CELL_WIDTH * column, TOP + CELL_HEIGHT * row
    middle = x + CELL_WIDTH // 2
    text = f"{summary.lossy} of {summary.runs} runs lost acknowledged records"
    if summary.lossy:
        text += f", {summary.median_lost} in the median, {summary.worst_lost} at worst"
    yield (
        f"<g><title>{escape(summary.question.settings)}, {summary.question.fault}: {text}</title>"
        f"<rect x='{x + 2}' y='{y + 2}' width='{CELL_WIDTH - 4}' height='{CELL_HEIGHT - 4}' "
        f"rx='6' fill='{colour(summary.share)}'/>"
    )
    share = f"{summary.share:.0%}" if summary.lossy else "0"
    yield f"<text class='big' x='{middle}' y='{y + 21}' text-anchor='middle'>{share}</text>"
    wait = _seconds(summary.median_unavailable_ms)
    yield f"<text class='small' x='{middle}' y='{y + 36}' text-anchor='middle'>{wait}</text></g>"


def colour(share: float) -> str:
    """Green if no run lost records; else from pale yellow to red, by the share of lossy runs."""
    if share == 0:
        return "#bfe5c8"
    hue = 48 - 44 * min(1.0, share) ** 0.6
    return f"hsl({hue:.0f} 88% {78 - 14 * share:.0f}%)"


def _seconds(wait_ms: Millis | None) -> str:
    if wait_ms is None:
        return "unknown"
    return f"{wait_ms / 1000:.1f} s" if wait_ms >= 100 else "no outage"
