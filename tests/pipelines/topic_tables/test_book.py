"""The states of tables, their file, and the choice of the topics to read, all without Spark."""

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from pyspark.errors import PySparkException

from tidelog_pipelines.failures import JobFailed
from tidelog_pipelines.jobs.plan import Plan
from tidelog_pipelines.jobs.topic_tables import table_ingestion
from tidelog_pipelines.jobs.topic_tables.book import (
    ERROR,
    LONGEST_PAUSE_SECONDS,
    OFF,
    RUNNING,
    WAITING,
    Book,
    TableState,
)
from tidelog_pipelines.jobs.topic_tables.choice import Chosen, choose
from tidelog_pipelines.jobs.topic_tables.table_ingestion import QueryChanges, TableIngestion
from tidelog_pipelines.jobs.topic_tables.table_metrics import TablesCollector, lag
from tidelog_pipelines.jobs.topic_tables.table_plans import TablePlans
from tidelog_pipelines.jobs.topic_tables.table_settings import DEFAULT, TableSettings
from tidelog_pipelines.jobs.topic_tables.topic_failures import topics_own
from tidelog_pipelines.jobs.topic_tables.watch import Look, TableTopic
from tidelog_pipelines.settings import KafkaSettings
from tidelog_pipelines.sinks.columns import TableMismatch
from tidelog_pipelines.sinks.destinations import Destination
from tidelog_pipelines.sources.registry import Registry, RegistryUnreachable

PAUSE_SECONDS = 10.0


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def book(tmp_path: Path, clock: Clock) -> Book:
    return Book(str(tmp_path / "states"), PAUSE_SECONDS, clock)


def plan_of(settings: TableSettings) -> Plan:
    return TablePlans(KafkaSettings(), "/out", Registry(""), 0).of(settings)


def found(book: Book, tables: dict[str, TableTopic], *others: str) -> Chosen:
    return choose(Look(tables, frozenset({*tables, *others}), {}), book, plan_of)


def one(settings: TableSettings = DEFAULT, id: str = "id-1", problem: str = "") -> TableTopic:
    return TableTopic(settings, id, (0,), problem)


def test_another_process_reads_what_was_noted(tmp_path: Path, book: Book) -> None:
    assert book.next_checkpoint() == 1
    book.note("a", state=RUNNING, id="id-1")
    book.written("a", {0: 5, 1: 7}, rows=11, quarantined=1)
    book.written("a", {0: 6}, rows=12, quarantined=1)
    book.hold("b", "it is bad.", {0: 3})
    again = Book(str(tmp_path / "states"))
    assert again.tables == book.tables
    assert again.of("a").offsets == {0: 6, 1: 7}
    assert again.of("b").offsets == {0: 3}
    assert again.offsets() == {"a": {0: 6, 1: 7}, "b": {0: 3}}
    assert again.next_checkpoint() == 2
    again.rest()
    assert (again.of("a").state, again.of("b").state) == (WAITING, ERROR)
    assert [file.name for file in tmp_path.iterdir()] == ["states"], "no draft is left"


def test_a_damaged_file_and_one_of_another_version_are_refused(tmp_path: Path) -> None:
    file = tmp_path / "states"
    for text in ("{", "[]", '{"version": 1}', '{"version":1,"checkpoint":1,"tables":{"a":{}}}'):
        file.write_text(text)
        with pytest.raises(JobFailed, match="is damaged"):
            Book(str(file))
    file.write_text(json.dumps({"version": 2}))
    with pytest.raises(JobFailed, match="was written by another version"):
        Book(str(file))
    with pytest.raises(JobFailed, match="cannot be written: No such file or directory"):
        Book(str(tmp_path / "absent" / "states")).note("a", rows=1)


def test_a_topic_is_read_unless_something_is_wrong_with_it(book: Book) -> None:
    tables = {
        "good": one(),
        "leaderless": one(problem="partition 0 has no leader"),
        "avro": one(TableSettings("avro")),
    }
    assert found(book, tables) == {"good": DEFAULT}
    assert book.of("good").state == RUNNING
    assert book.of("leaderless").state == WAITING
    assert book.of("leaderless").error == "partition 0 has no leader"
    assert book.of("avro").state == ERROR
    assert "needs a schema registry" in book.of("avro").error
    repaired = {"good": one(), "leaderless": one(), "avro": one(TableSettings("text"))}
    assert list(found(book, repaired)) == list(repaired)
    assert {(state.state, state.error) for state in book.tables.values()} == {(RUNNING, "")}
    assert book.of("avro").format == "text"


def test_only_settings_that_the_query_needs_change_the_choice(book: Book) -> None:
    first = found(book, {"t": one(TableSettings(retention_ms=5))})
    assert found(book, {"t": one(TableSettings(retention_ms=7))}) == first
    assert found(book, {"t": one(TableSettings(format="raw"))}) != first


def test_a_topic_that_is_switched_off_keeps_its_offsets(book: Book) -> None:
    found(book, {"t": one(), "u": one()})
    book.written("t", {0: 5}, rows=5)
    assert found(book, {"u": one()}, "t") == {"u": DEFAULT}
    assert (book.of("t").state, book.of("t").error) == (OFF, "")
    assert found(book, {"u": one()}) == {"u": DEFAULT}
    assert book.of("t").error == "the topic was deleted; its table is kept"
    assert list(found(book, {"t": one(), "u": one()})) == ["t", "u"]
    assert book.of("t") == TableState(
        RUNNING, id="id-1", rows=5, offsets={0: 5}, last_batch=book.of("t").last_batch
    )


def test_a_topic_that_was_created_again_is_not_read(book: Book) -> None:
    found(book, {"t": one(), "empty": one()})
    book.written("t", {0: 5})
    anew = {"t": one(id="id-2"), "empty": one(id="id-2")}
    assert list(found(book, anew)) == ["empty"], "no record of the old topic was read"
    assert book.of("t").state == ERROR
    assert book.of("t").error.startswith("topic t was deleted and created again (its id is id-2")


def test_a_topic_that_fails_pauses_longer_each_time(book: Book, clock: Clock) -> None:
    tables = {"bad": one(), "good": one()}
    found(book, tables)
    book.hold("bad", "it is bad.", {0: 3})
    assert found(book, tables) == {"good": DEFAULT}
    clock.now += PAUSE_SECONDS
    assert list(found(book, tables)) == ["bad", "good"]
    assert (book.of("bad").state, book.of("bad").error) == (ERROR, "it is bad."), "until it works"
    book.hold("bad", "it is bad.", {0: 3})
    clock.now += PAUSE_SECONDS
    assert found(book, tables) == {"good": DEFAULT}
    clock.now += PAUSE_SECONDS
    assert list(found(book, tables)) == ["bad", "good"]
    book.hold("bad", "it is bad.", {0: 3})
    changed = {**tables, "bad": one(TableSettings("text"))}
    assert list(found(book, changed)) == ["bad", "good"], "other settings may work"
    for _ in range(30):
        book.hold("bad", "it is bad.", {0: 3})
    clock.now += LONGEST_PAUSE_SECONDS
    assert list(found(book, changed)) == ["bad", "good"]
    book.written("bad", {0: 9})
    assert book.of("bad").offsets == {0: 9}
    assert (book.of("bad").state, book.of("bad").error, book.of("bad").failures) == (RUNNING, "", 0)


def test_no_micro_batch_begins_after_the_end_of_a_query(book: Book) -> None:
    ingestion = TableIngestion(plan_of(DEFAULT), {}, book)
    assert ingestion.is_idle
    ingestion.close()
    nothing: Any = None
    with pytest.raises(QueryChanges):
        ingestion(nothing, 7)
    assert ingestion.is_closed
    assert ingestion.is_idle


def test_a_table_that_cannot_be_compacted_does_not_hold_up_the_others(
    book: Book, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    compacted: list[str] = []

    def compact(_: object, places: list[Destination]) -> None:
        topics = [place.topic for place in places]
        if topics == ["bad"]:
            raise PySparkException("[FAILED_READ_FILE] a file is missing")
        compacted.extend(topics)

    monkeypatch.setattr(table_ingestion, "compact", compact)
    ingestion = TableIngestion(plan_of(DEFAULT)._replace(compact_every=1), {}, book)
    ingestion._batches.update(["bad", "good"])
    run: Any = SimpleNamespace(tables_for=lambda plan: None)
    ingestion._finish(run, {}, 1)
    assert compacted == ["good"]
    assert capsys.readouterr().err.startswith("tidelog: bad: ")


def test_which_failures_are_of_one_topic() -> None:
    own = TableMismatch("the table of topic t was written with another --value-format.")
    assert topics_own(own) == str(own)
    down = RegistryUnreachable("the schema registry does not answer at r (refused).")
    assert topics_own(down) == str(down)
    assert topics_own(KeyError("x")) == "this is a bug in Tidelog: KeyError: 'x'"
    assert topics_own(JobFailed("no broker answers at b.")) is None
    assert topics_own(Exception("java.io.IOException: No space left on device")) is None
    assert topics_own(Exception("Job 7 cancelled because the query is stopped")) is None
    assert topics_own(ConnectionResetError()) is None


def test_metrics_have_each_topic(book: Book) -> None:
    book.note("t", state=ERROR, rows=3, quarantined=2, failures=1, offsets={0: 4})
    ends = {"t": {0: 9, 1: 2}, "new": {0: 1}}
    assert lag(ends, book.offsets()) == {"t": {0: 5, 1: 2}, "new": {0: 1}}
    samples = {
        (sample.name, *sample.labels.values()): sample.value
        for family in TablesCollector(book, lambda: ends).collect()
        for sample in family.samples
    }
    assert samples[("tidelog_tables_rows", "t")] == 3
    assert samples[("tidelog_tables_quarantined", "t")] == 2
    assert samples[("tidelog_tables_failures", "t")] == 1
    assert samples[("tidelog_tables_state", "t", "error")] == 1
    assert samples[("tidelog_tables_state", "t", "running")] == 0
    assert samples[("tidelog_tables_lag_records", "t", "0")] == 5
    assert samples[("tidelog_tables_lag_records", "new", "0")] == 1


def test_the_report_of_a_loss_replaces_an_earlier_failure_and_stays(book: Book) -> None:
    book.hold("orders", "the disk is full", {0: 5})

    book.written("orders", {0: 9}, "records of orders-0 may have been deleted", rows=2)
    assert book.of("orders").error == "records of orders-0 may have been deleted"
    assert book.of("orders").state == RUNNING

    book.written("orders", {0: 12}, rows=5)
    assert book.of("orders").error == "records of orders-0 may have been deleted"


def test_a_batch_clears_the_error_of_an_earlier_failure(book: Book) -> None:
    book.hold("orders", "the disk is full", {0: 5})

    book.written("orders", {0: 9}, rows=2)

    assert book.of("orders").error == ""
    assert book.of("orders").state == RUNNING
