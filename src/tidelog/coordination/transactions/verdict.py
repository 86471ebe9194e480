"""The result of a decision about one transactional id."""

from typing import NamedTuple

from tidelog.coordination.transactions.transaction import Transaction
from tidelog.model.errors import ErrorCode


class Verdict(NamedTuple):
    error: ErrorCode
    """The error to answer, once `next` is committed."""
    next: Transaction | None = None
    """The state to write; None if nothing changes."""
    needs_producer_id: bool = False
    """Whether to decide again with a new producer id. If so, nothing else is decided."""


NEEDS_PRODUCER_ID = Verdict(ErrorCode.none, needs_producer_id=True)
