"""The results as one HTML page with plots; the page loads nothing from elsewhere."""

from collections.abc import Iterator
from html import escape
from string import Template

from tidelog.bench.measures import Measure
from tidelog.bench.results import QUIET, Results, Values, number

COLOURS = ("#1f7a8c", "#c9772e")
WIDTH, BAR, LABEL, LEFT = 640, 22, 130, 90

_PAGE = Template("""<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width">
<title>$title</title>
<style>
:root { color-scheme: light dark; }
body { font: 15px/1.5 system-ui, sans-serif; max-width: 62rem; margin: 2rem auto; padding: 0 1rem; }
table { border-collapse: collapse; width: 100%; font-size: 14px; }
th, td { text-align: left; padding: .25rem .6rem; border-bottom: 1px solid #8884; }
td:nth-child(n+4) { font-variant-numeric: tabular-nums; white-space: nowrap; }
figure { margin: 1.4rem 0; }
figcaption { font-weight: 600; }
figcaption small { font-weight: 400; opacity: .7; }
svg { width: 100%; height: auto; font: 12px system-ui, sans-serif; }
svg text { fill: currentColor; }
svg .spread { stroke: currentColor; stroke-width: 1.5; }
</style>
<h1>$title</h1>
<p>$about</p>
<table>
<tr>$heads</tr>
$rows
</table>
<p>A cell is the median of all repeats, with the lowest and the highest value in brackets. $note</p>
<h2>Plots</h2>
<p>A bar is the median, and the line on it reaches from the lowest to the highest value.</p>
$plots
</html>
""")


def page(results: Results) -> str:
    title = " and ".join(one.capitalize() for one in results.systems)
    about = "; ".join(f"{key}: {value}" for key, value in results.about.items())
    noisy = [one.name for one in results.table if results.others(one) > QUIET]
    note = (
        f"Other processes used more than {100 * QUIET:.0f} % of a core during {len(noisy)} of "
        f"{len(results.table)} measures, so single figures are uncertain."
        if noisy
        else "The machine was quiet."
    )
    return _PAGE.substitute(
        title=escape(f"{title}: benchmark"),
        about=escape(about),
        heads="".join(f"<th>{escape(one)}</th>" for one in results.heads),
        rows="\n".join(_row(cells) for cells in results.rows()),
        note=escape(note),
        plots="\n".join(_plot(measure, found) for measure, found in results.table.items()),
    )


def _row(cells: list[str]) -> str:
    return "<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in cells) + "</tr>"


def _plot(measure: Measure, found: dict[str, Values]) -> str:
    most = max(max(one.values) for one in found.values()) or 1.0
    bars = "".join(_bars(found, (WIDTH - LEFT - LABEL) / most))
    caption = f"{escape(measure.name)} <small>{escape(measure.unit)}, {measure.better} is better"
    return (
        f"<figure><figcaption>{caption}</small></figcaption>"
        f'<svg viewBox="0 0 {WIDTH} {len(found) * (BAR + 6)}" role="img">{bars}</svg></figure>'
    )


def _bars(found: dict[str, Values], scale: float) -> Iterator[str]:
    for place, (system, one) in enumerate(found.items()):
        top = place * (BAR + 6)
        middle = top + BAR / 2
        low, high = (LEFT + scale * edge(one.values) for edge in (min, max))
        yield f'<text x="0" y="{middle + 4}">{escape(system)}</text>'
        yield (
            f'<rect x="{LEFT}" y="{top}" width="{scale * one.median:.1f}" height="{BAR}" rx="2" '
            f'fill="{COLOURS[place % len(COLOURS)]}"/>'
        )
        yield f'<line class="spread" x1="{low:.1f}" x2="{high:.1f}" y1="{middle}" y2="{middle}"/>'
        yield f'<text x="{high + 8:.1f}" y="{middle + 4}">{number(one.median)}</text>'
