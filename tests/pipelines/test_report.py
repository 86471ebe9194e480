"""The content of the report page, which must have no external resources."""

import re
from html.parser import HTMLParser
from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from tests.pipelines.event_stories import START_MS, Events, a_bad_day

from tidelog_pipelines.jobs import health, report
from tidelog_pipelines.sinks.reports.charts import TimeAxis, count, duration, opacity


class Page(HTMLParser):
    """Parses a page, and fails if tags do not match."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.words: list[str] = []
        self.feed(text)
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag != "meta":
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        pass

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.words.append(data)

    @property
    def text(self) -> str:
        return " ".join(self.words)


@pytest.fixture(scope="module")
def page(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> str:
    home = tmp_path_factory.mktemp("report")
    events = home / "events.jsonl"
    log = Events("<b>odd</b>", 0)
    log.elect(5, 1, "created")
    log.elect(6000, -1)
    own = [Events("__consumer_offsets", number) for number in range(40)]
    for one in own:
        one.elect(5, 1, "created")
        one.shrink(600, 3)
        one.elect(6000, 2)
    recorded = [line for one in (log, *own) for line in one.lines]
    events.write_text("\n".join([*a_bad_day(every=60), *recorded]) + "\n")
    out = home / "report.html"
    settings = report.ReportSettings(events=str(events), out=str(out), title="A bad day")
    assert report.write(spark, settings) == 0
    return out.read_text()


def test_the_page_says_what_happened(page: str) -> None:
    text = Page(page).text

    assert "A bad day" in text
    assert "1 partition without a leader now" in text
    assert "left the in-sync set: slow" in text
    assert "orders-0: 2 of 3 in sync for" in text
    assert re.search(r"orders-1: broker 1 took over from 2 \(dead\) at 01:06:00 after \d+ ms", text)
    assert "broker 3 at 00:30: up to" in text
    assert page.count("<svg ") == 3


def test_the_cluster_s_own_topics_come_last_in_one_line_each(page: str) -> None:
    text = Page(page).text
    names = re.findall(r'class="name"[^>]*>([^<]+)<', page)

    assert names.index("__consumer_offsets (40)") > names.index("payments-2")
    assert "Every partition, the worst first." in text
    assert "__consumer_offsets-7: 2 of 3 in sync for 90.0 min from 00:10:00" in text
    listed = re.findall(r"<td>([^<]+)</td><td>\d\d:\d\d:\d\d</td>", page)
    assert set(listed[:3]) == {"orders-1", "orders-4", "payments-2"}
    assert listed[3].startswith("__consumer_offsets-")


def test_the_page_needs_nothing_else_and_trusts_no_name(page: str) -> None:
    assert not re.search(r"https?:|src=|@import|url\(|<script|<link", page)
    assert "<b>odd" not in page
    assert "&lt;b&gt;odd&lt;/b&gt;-0" in page


def test_health_prints_the_worst_first(
    spark: SparkSession, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    events = tmp_path / "events.jsonl"
    events.write_text("\n".join(a_bad_day(partitions=4, every=600)) + "\n")

    assert health.main(["--events", str(events), "--out", str(tmp_path / "tables")]) == 0

    said = capsys.readouterr().out
    assert said.index("Under-replicated partitions") < said.index("Top causes")
    flapping = spark.read.format("delta").load(str(tmp_path / "tables" / "flapping"))
    assert {(row["topic"], row["broker"]) for row in flapping.collect()} == {("orders", 3)}


def test_nothing_to_tell_is_one_sentence(
    spark: SparkSession, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "events.jsonl").write_text("")

    assert report.main(["--events", str(tmp_path / "events.jsonl")]) == 1
    assert "no replication event was found" in capsys.readouterr().err


def test_the_time_axis_has_few_round_ticks() -> None:
    axis = TimeAxis(START_MS, START_MS + 4 * 3_600_000)

    assert [label for _, label in axis.ticks()] == [
        *("00:00", "00:30", "01:00", "01:30", "02:00", "02:30", "03:00", "03:30", "04:00")
    ]
    assert len(list(TimeAxis(START_MS, START_MS + 90 * 86_400_000).ticks())) < 15
    short = TimeAxis(START_MS, START_MS + 60_000)
    assert [label for _, label in short.ticks()][:2] == ["00:00:00", "00:00:10"]


def test_numbers_are_for_people() -> None:
    assert [duration(ms) for ms in (None, 340, 4200, 210_000, 7_560_000)] == [
        *("unknown", "340 ms", "4.2 s", "3.5 min", "2.1 h")
    ]
    assert [count(number) for number in (950, 12_400, 14_000, 3_100_000)] == [
        *("950", "12.4 k", "14 k", "3.1 M")
    ]
    assert opacity(0, 0) < opacity(10, 1000) < opacity(100, 1000) < opacity(1000, 1000) == 1
