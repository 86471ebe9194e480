"""The notebook about the Python API runs on a cluster, and prints the output that it shows."""

import io
import json
from contextlib import redirect_stdout
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession
from tests.pipelines.page_notebook import NOTEBOOK, notebook

from tidelog.testing import Cluster


def shown(cell: dict[str, Any]) -> str:
    return "".join(line for output in cell["outputs"] for line in output["text"])


def test_the_notebook_is_that_of_the_page() -> None:
    assert json.loads(NOTEBOOK.read_text()) == notebook()


def test_every_cell_works_as_shown(
    spark: SparkSession, cluster: Cluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "tidelog-data").symlink_to(cluster.directory)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("TIDELOG_BOOTSTRAP_SERVER", cluster.bootstrap)
    names: dict[str, Any] = {}
    for cell in json.loads(NOTEBOOK.read_text())["cells"]:
        if cell["cell_type"] == "code":
            code, printed = "".join(cell["source"]), io.StringIO()
            with redirect_stdout(printed):
                exec(compile(code, NOTEBOOK.name, "exec"), names)
            assert printed.getvalue().rstrip("\n") == shown(cell).rstrip("\n"), code
