"""A producer of a demo, in its own thread. It writes until it is stopped, and reports a failure."""

from abc import ABC, abstractmethod
from threading import Event, Thread

from tidelog.model.user_error import UserError


class Writing(ABC):
    """The base class of demo producers. A subclass writes batches while `goes_on` is true."""

    def __init__(self) -> None:
        self._stop = Event()
        self._thread = Thread(target=self._run, name="producer", daemon=True)
        self._failure: Exception | None = None
        self.acknowledged = 0

    @property
    def goes_on(self) -> bool:
        return not self._stop.is_set()

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        """Stop after the batch in flight."""
        self._stop.set()
        self._thread.join()
        self.check()

    def check(self) -> None:
        if self._failure is not None:
            raise UserError(f"the producer has failed: {self._failure}")

    @abstractmethod
    def write(self) -> None:
        """Write batches until `goes_on` is false."""

    def _run(self) -> None:
        try:
            self.write()
        except Exception as failure:
            # `check` raises the failure in the main thread, which ends the demo.
            self._failure = failure
