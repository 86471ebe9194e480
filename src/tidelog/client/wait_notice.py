"""Reports why a command waits, if the wait takes long. A silent command would seem to hang."""

import time
from collections.abc import Callable

NOTICE_SECONDS = 2.0


class WaitNotice:
    """Reports each long wait once."""

    def __init__(self, tell: Callable[[str], None] | None) -> None:
        self._tell = tell
        self._since: float | None = None
        self._has_reported = False

    @property
    def is_wanted(self) -> bool:
        return self._tell is not None

    def waiting(self, reason: str) -> None:
        """Record that the command retries for this reason."""
        if self._since is None:
            self._since = time.monotonic()
        elif time.monotonic() - self._since >= NOTICE_SECONDS:
            self.say(reason)

    def say(self, reason: str) -> None:
        if self._tell is not None and not self._has_reported:
            self._has_reported = True
            self._tell(f"waiting: {reason}")

    def over(self) -> None:
        """Record that the wait is over."""
        self._since = None
        self._has_reported = False
