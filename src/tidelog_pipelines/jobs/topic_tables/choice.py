"""Decides which topics the query reads, and notes the state of every table."""

from collections.abc import Callable

from tidelog_pipelines.failures import JobFailed
from tidelog_pipelines.jobs.plan import Plan
from tidelog_pipelines.jobs.topic_tables.book import ERROR, OFF, RUNNING, WAITING, Book
from tidelog_pipelines.jobs.topic_tables.table_settings import TableSettings
from tidelog_pipelines.jobs.topic_tables.watch import Look, TableTopic
from tidelog_pipelines.sinks.identities import TopicReplaced

Chosen = dict[str, TableSettings]
"""The topics to read, with the settings that the query depends on."""


def choose(look: Look, book: Book, plan_of: Callable[[TableSettings], Plan]) -> Chosen:
    """The topics to read now. If a topic cannot be read, the reason is noted in the book."""
    for topic in book.tables.keys() - look.tables.keys():
        gone = "" if topic in look.existing else "the topic was deleted; its table is kept"
        book.note(topic, state=OFF, error=gone)
        book.end_pause(topic)
    return {
        topic: one.settings.for_the_query
        for topic, one in look.tables.items()
        if _is_readable(topic, one, book, plan_of)
    }


def _is_readable(
    topic: str, one: TableTopic, book: Book, plan_of: Callable[[TableSettings], Plan]
) -> bool:
    before, settings = book.of(topic), one.settings
    now = {name: getattr(settings, name) for name in ("format", "mode", "table_format")}
    if any(getattr(before, name) != value for name, value in now.items()):
        book.note(topic, **now, failures=0)
        book.end_pause(topic)
    if one.problem:
        book.note(topic, state=WAITING, error=one.problem)
        return False
    try:
        _check_id(topic, one, book)
        plan_of(settings)
    except (JobFailed, ValueError, OSError) as error:
        book.note(topic, state=ERROR, error=str(error))
        return False
    if book.is_pausing(topic):
        return False
    if not book.of(topic).failures and before.state != RUNNING:
        book.note(topic, state=RUNNING, error="")
    return True


def _check_id(topic: str, one: TableTopic, book: Book) -> None:
    """Raise if the topic was deleted and created again since the table was written."""
    known = book.of(topic)
    if one.id and known.id != one.id:
        if known.id and known.offsets:
            raise TopicReplaced(topic, known.id, one.id)
        book.note(topic, id=one.id)
