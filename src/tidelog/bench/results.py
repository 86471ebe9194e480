"""The figures of a benchmark: every value of every repeat, and what is printed of them."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from statistics import median
from typing import Any

from tidelog.bench.measures import Measure

QUIET = 0.05
"""If other processes use a larger share of a core than this, a figure is marked."""


@dataclass(slots=True)
class Values:
    """The values of one measure and system, one or more for each repeat."""

    values: list[float] = field(default_factory=list)
    others: list[float] = field(default_factory=list)

    @property
    def median(self) -> float:
        return median(self.values)

    @property
    def shown(self) -> str:
        """The median, with the lowest and the highest value if there are several."""
        if len(self.values) == 1:
            return number(self.values[0])
        return f"{number(self.median)} ({number(min(self.values))} to {number(max(self.values))})"


@dataclass(slots=True)
class Results:
    """The values by measure and system, in the order in which they were first reported."""

    systems: Sequence[str]
    about: dict[str, Any]
    table: dict[Measure, dict[str, Values]] = field(default_factory=dict)

    def add(self, system: str, measure: Measure, value: float, others: float) -> None:
        found = self.table.setdefault(measure, {}).setdefault(system, Values())
        found.values.append(value)
        found.others.append(others)

    def ratio(self, measure: Measure) -> float | None:
        """The first system's median divided by the second one's."""
        found = [self.table[measure].get(system) for system in self.systems]
        if len(found) < 2 or found[0] is None or found[1] is None or not found[1].median:
            return None
        return found[0].median / found[1].median

    def others(self, measure: Measure) -> float:
        """The largest share of a core that other processes used during this measure."""
        return max(max(one.others) for one in self.table[measure].values())

    @property
    def heads(self) -> list[str]:
        ratio = [f"{self.systems[0]} / {self.systems[1]}"] if len(self.systems) > 1 else []
        return ["measure", "unit", "better", *self.systems, *ratio, "others, % of a core"]

    def rows(self) -> Iterator[list[str]]:
        for measure, found in self.table.items():
            shown = [found[one].shown if one in found else "-" for one in self.systems]
            if len(self.systems) > 1:
                ratio = self.ratio(measure)
                shown.append("-" if ratio is None else f"{ratio:.2f}")
            others = f"{100 * self.others(measure):.0f}"
            yield [measure.name, measure.unit, measure.better, *shown, others]

    def as_json(self) -> dict[str, Any]:
        measures = [
            {
                **measure._asdict(),
                "systems": {
                    system: {"values": one.values, "others": one.others}
                    for system, one in found.items()
                },
                "ratio": self.ratio(measure),
            }
            for measure, found in self.table.items()
        ]
        return {"about": self.about, "systems": list(self.systems), "measures": measures}


def number(value: float) -> str:
    """Three significant digits; thousands are separated."""
    if abs(value) >= 100:
        return f"{value:,.0f}"
    return f"{value:.3g}"
