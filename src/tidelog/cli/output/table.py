"""Tables in plain text. A column is as wide as its widest cell."""

from collections.abc import Iterator, Sequence

GAP = "  "


def table(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> Iterator[str]:
    """The lines of a table. Columns of numbers are aligned to the right."""
    widths = [max(map(len, cells)) for cells in zip(heads, *rows, strict=True)]
    is_number = [_are_numbers([row[column] for row in rows]) for column in range(len(heads))]
    for row in (heads, *rows):
        cells = (
            cell.rjust(width) if right else cell.ljust(width)
            for cell, width, right in zip(row, widths, is_number, strict=True)
        )
        yield GAP.join(cells).rstrip()


def _are_numbers(cells: Sequence[str]) -> bool:
    filled = [cell for cell in cells if cell not in ("", "-")]
    return bool(filled) and all(map(str.isdecimal, filled))
