"""fsyncs under way: each has a token, and someone who waits for its end."""

from collections.abc import Callable
from itertools import count

from tidelog.model.disk import File
from tidelog.model.events import Flushed
from tidelog.model.outbound import Flush, Outbound


class Flushes:
    def __init__(self, emit: Callable[[Outbound], None]) -> None:
        self._emit = emit
        self._tokens = count(1)
        self._waiting: dict[int, tuple[Callable[[], None], Callable[[str], None]]] = {}

    def start(
        self, files: tuple[File, ...], done: Callable[[], None], failed: Callable[[str], None]
    ) -> None:
        """Sync the files off the node's thread, then call back."""
        token = next(self._tokens)
        self._waiting[token] = (done, failed)
        self._emit(Flush(token, files))

    def ended(self, event: Flushed) -> None:
        done, failed = self._waiting.pop(event.token)
        if event.error is None:
            done()
        else:
            # After a failed fsync nobody knows what the disk holds; only recovery can tell.
            failed(f"fsync failed: {event.error}")
