"""The decoding of a long request, or the encoding of a long response, one slice after the other."""

from collections.abc import Callable
from typing import Any

from tidelog.node.requests.client_sessions import ClientSession
from tidelog.node.requests.slices import Slices
from tidelog.protocol.slices import Steps


class SlicedWork:
    """The work on one message. It is in no reference cycle, so its memory is freed at once.

    In a reference cycle, a request of several megabytes would stay in memory until the garbage
    collector finds it, and the collector rarely visits old objects (`runtime/long_collections.py`).
    """

    __slots__ = ("_about", "_done", "_failed", "_session", "_slices", "_steps")

    def __init__(
        self,
        slices: Slices,
        session: ClientSession,
        about: Callable[[], str],
        steps: Steps[Any],
        done: Callable[[Any], None],
        failed: Callable[[Exception], None],
    ) -> None:
        self._slices = slices
        self._session = session
        self._about = about
        """Returns the label of the request."""
        self._steps = steps
        self._done = done
        self._failed = failed

    def go_on(self) -> None:
        """Run one slice, then schedule the next one or pass the result to `done`."""
        if self._session.is_closed:
            self._steps.close()
            return
        try:
            next(self._steps)
        except StopIteration as end:
            result = end.value
        except Exception as error:
            self._failed(error)
            return
        else:
            self._slices.later(self.go_on, self._about())
            return
        self._done(result)
