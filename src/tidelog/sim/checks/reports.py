"""Captures the warnings and errors of simulated nodes, even if logging does not show them."""

import logging
from collections.abc import Iterator
from contextlib import contextmanager


class Reports(logging.Handler):
    """The messages at WARNING and above, in order."""

    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self.messages: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.messages.append(record.getMessage())

    def mention(self, names: set[str], since: int) -> bool:
        """Whether a message from index `since` on contains one of these names."""
        return any(name in said for said in self.messages[since:] for name in names)


@contextmanager
def kept() -> Iterator[Reports]:
    """Capture the reports of nodes inside the block, even if logging is disabled."""
    reports, logger = Reports(), logging.getLogger("tidelog")
    disabled, propagates = logging.root.manager.disable, logger.propagate
    logger.addHandler(reports)
    logger.propagate = propagates and disabled < logging.WARNING
    logging.disable(logging.NOTSET)
    try:
        yield reports
    finally:
        logging.disable(disabled)
        logger.propagate = propagates
        logger.removeHandler(reports)
