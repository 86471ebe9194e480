"""The exception and the message of each error code, as Kafka's Java tools print them."""

from functools import cache
from importlib.resources import files

from tidelog.model.errors import ErrorCode

PACKAGE = "org.apache.kafka.common.errors."


def exception_text(error: ErrorCode, message: str | None = None) -> str:
    """The text of the Java exception: its class, and the broker's message or the default one."""
    return f"{exception_class(error)}: {message or default_message(error)}"


def exception_class(error: ErrorCode) -> str:
    name, _ = _table()[error]
    return name if "." in name else PACKAGE + name


def default_message(error: ErrorCode) -> str:
    _, message = _table()[error]
    return message


@cache
def _table() -> dict[int, tuple[str, str]]:
    text = files(__package__).joinpath("kafka_exceptions.tsv").read_text(encoding="utf-8")
    rows = (line.split("\t") for line in text.splitlines())
    return {int(code): (name, message) for code, name, message in rows}
