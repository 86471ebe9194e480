"""A demo's producer in a thread of its own: writes until it is stopped, or says why it cannot."""

from abc import ABC, abstractmethod
from threading import Event, Thread

from tidelog.model.user_error import UserError


class Writing(ABC):
    """Subclasses write, batch after batch, while `goes_on`."""

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
        """End after the batch that is under way."""
        self._stop.set()
        self._thread.join()
        self.check()

    def check(self) -> None:
        if self._failure is not None:
            raise UserError(f"the producer has failed: {self._failure}")

    @abstractmethod
    def write(self) -> None:
        """Write until it goes on no more."""

    def _run(self) -> None:
        try:
            self.write()
        except Exception as failure:
            # Told by the main thread, whatever it was: a demo that stopped writing shows nothing.
            self._failure = failure
