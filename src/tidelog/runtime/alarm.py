"""Wakes the loop from another thread or from a signal handler."""

import contextlib
import socket


class Alarm:
    """An alarm whose descriptor is readable from `ring()` until the next `quiet()`."""

    def __init__(self) -> None:
        self._bell, self._button = socket.socketpair()
        self._bell.setblocking(False)
        self._button.setblocking(False)

    def fileno(self) -> int:
        """The descriptor to watch for input."""
        return self._bell.fileno()

    def button_fd(self) -> int:
        """The descriptor for `signal.set_wakeup_fd`, so that every signal rings the alarm."""
        return self._button.fileno()

    def ring(self) -> None:
        # If the socket is full, the alarm already rings. If the socket is closed, the loop has
        # ended.
        with contextlib.suppress(OSError):
            self._button.send(b"!")

    def quiet(self) -> None:
        with contextlib.suppress(BlockingIOError):
            while self._bell.recv(4096):
                pass

    def close(self) -> None:
        self._bell.close()
        self._button.close()
