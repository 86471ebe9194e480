"""Makes the notebook about the Python API, with the code and the output of the page.

If the page has changed, run `python -m tests.pipelines.page_notebook` to write the notebook.
"""

import json
import re
from pathlib import Path
from typing import Any

DOCS = Path(__file__).parents[2] / "docs"
PAGE, NOTEBOOK = DOCS / "pipeline-api.md", DOCS / "pipeline-api.ipynb"
FIRST, AFTER_LAST = "## In a notebook", "## A session of your own"
FENCE = re.compile(r"^```(python|text)\n(.*?)^```\n", re.MULTILINE | re.DOTALL)
PYTHON = {
    "kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
    "language_info": {"name": "python"},
}


def notebook() -> dict[str, Any]:
    """The notebook that the page describes."""
    page = PAGE.read_text()
    section = page[page.index(FIRST) : page.index(AFTER_LAST)]
    cells: list[dict[str, Any]] = []
    prose, *fenced = FENCE.split(section)
    _add_prose(cells, prose)
    for language, body, after in zip(fenced[::3], fenced[1::3], fenced[2::3], strict=True):
        if language == "python":
            code = {"execution_count": None, "outputs": [], **_cell("code", body)}
            cells.append(code)
        else:
            lines = body.splitlines(keepends=True)
            output = {"name": "stdout", "output_type": "stream", "text": lines}
            cells[-1]["outputs"].append(output)
        _add_prose(cells, after)
    return {"cells": cells, "metadata": PYTHON, "nbformat": 4, "nbformat_minor": 4}


def _add_prose(cells: list[dict[str, Any]], text: str) -> None:
    if text.strip():
        cells.append(_cell("markdown", text))


def _cell(kind: str, text: str) -> dict[str, Any]:
    lines = text.strip().splitlines(keepends=True)
    return {"cell_type": kind, "metadata": {}, "source": lines}


if __name__ == "__main__":
    NOTEBOOK.write_text(json.dumps(notebook(), indent=1, ensure_ascii=False) + "\n")
