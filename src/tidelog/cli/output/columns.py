"""Tables in the format of Kafka's newer tools: padded cells, each with a tab after it."""

from collections.abc import Iterator, Sequence


def tabbed(rows: Sequence[Sequence[str]]) -> Iterator[str]:
    """The lines of a table, whose first row is its header."""
    widths = [max(map(len, cells)) for cells in zip(*rows, strict=True)]
    for row in rows:
        yield "".join(f"{cell.ljust(width)}\t" for cell, width in zip(row, widths, strict=True))
