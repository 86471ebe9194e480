"""Lets a handler pause between slices of long work (F63).

Most handlers use `in_parts`, which splits a long request into short requests, passes them to the
handler in turn, and joins the responses. Each part is handled with the newest image. A rule about
all elements of a request, such as unique names, is checked only within each part.

Handlers whose requests or responses cannot be split this way pause by themselves, using a `Pace`.
"""

from collections.abc import Callable, Generator, Iterator, Sequence
from dataclasses import replace
from functools import wraps
from types import GeneratorType
from typing import Any, NamedTuple, TypeVar

from tidelog.api.handler import Handler, Handling, Request
from tidelog.model.effects import Effect, Pause
from tidelog.model.errors import ErrorCode
from tidelog.protocol.slices import Steps

T = TypeVar("T")
R = TypeVar("R")

SLICE = 250
"""The number of request elements per slice. A handler takes up to 20 microseconds per element."""

PAUSE = Pause()


class Pace:
    """Counts the elements that a handler has processed since its last pause."""

    __slots__ = ("_left", "_slice")

    def __init__(self, elements: int = SLICE) -> None:
        self._slice = self._left = elements

    def is_due(self, done: int = 1) -> bool:
        """Count `done` more elements; returns whether to pause now."""
        self._left -= done
        if self._left > 0:
            return False
        self._left = self._slice
        return True


def in_slices(
    items: Sequence[T], work: Callable[[T], R], elements: int = SLICE
) -> Generator[Effect, Any, list[R]]:
    """`[work(item) for item in items]`, with a pause after every `elements` items."""
    done: list[R] = []
    for part in chunks(items, elements):
        if done:
            yield PAUSE
        done += map(work, part)
    return done


def pausing(steps: Steps[R]) -> Generator[Effect, Any, R]:
    """Run the steps, and pause after each of them."""
    while True:
        try:
            next(steps)
        except StopIteration as done:
            result: R = done.value
            return result
        yield PAUSE


def chunks(items: Sequence[T], size: int) -> Iterator[Sequence[T]]:
    for start in range(0, len(items), size):
        yield items[start : start + size]


# -- Requests in parts -----------------------------------------------------------------------------


class Parts(NamedTuple):
    """The field names of the nested arrays to split in a request and to join in its response."""

    asked: tuple[str, ...]
    answered: tuple[str, ...]
    size: int = SLICE


def in_parts(handler: Handler, parts: Parts) -> Handler:
    """Wrap a handler so that it receives a long request in short parts."""

    @wraps(handler)
    def handle(request: Request) -> Any:
        if elements_of(request.message, parts.asked) <= parts.size:
            return handler(request)
        return _handle_parts(handler, parts, request)

    return handle


def _handle_parts(handler: Handler, parts: Parts, request: Request) -> Handling:
    responses: list[Any] = []
    for part in split(request.message, parts.asked, parts.size):
        if responses:
            yield PAUSE
        request.message = part
        response = handler(request)
        if isinstance(response, GeneratorType):
            response = yield from response
        if getattr(response, "error_code", ErrorCode.none) is not ErrorCode.none:
            return response  # the error concerns the whole request, so later parts would fail too
        responses.append(response)
    return joined(responses, parts.answered)


def elements_of(message: Any, path: Sequence[str]) -> int:
    """The number of innermost elements. An empty array counts as one element, and null as none."""
    items = getattr(message, path[0])
    if not items:
        return 0 if items is None else 1
    if len(path) == 1:
        return len(items)
    return sum(elements_of(item, path[1:]) for item in items)


def split(message: Any, path: Sequence[str], size: int) -> Iterator[Any]:
    """Split a message into messages of at most `size` elements, in the same order."""
    field, rest = path[0], path[1:]
    items = getattr(message, field)
    if not rest:
        for chunk in chunks(items, size):
            yield replace(message, **{field: chunk})
        return
    part: list[Any] = []
    room = size
    for item in items:
        for piece in split(item, rest, size) if elements_of(item, rest) > size else (item,):
            count = elements_of(piece, rest)
            if count > room and part:
                yield replace(message, **{field: tuple(part)})
                part, room = [], size
            part.append(piece)
            room -= count
    if part:
        yield replace(message, **{field: tuple(part)})


def joined(responses: Sequence[Any], path: Sequence[str]) -> Any:
    """Join responses into one, and merge the rows that `split` divided."""
    items: list[Any] = []
    for response in responses:
        found = getattr(response, path[0])
        if len(path) > 1 and items and found and _is_rest(items[-1], found[0], path[1]):
            items[-1] = joined((items[-1], found[0]), path[1:])
            found = found[1:]
        items += found
    return replace(responses[0], **{path[0]: tuple(items)})


def _is_rest(first: Any, second: Any, nested: str) -> bool:
    """Whether two rows differ only in their nested elements."""
    return bool(replace(first, **{nested: ()}) == replace(second, **{nested: ()}))
