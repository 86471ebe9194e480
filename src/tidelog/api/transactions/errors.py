"""The errors of transaction APIs in older versions."""

from tidelog.model.errors import ErrorCode


def older_error(error: ErrorCode, version: int, first_with_fenced: int) -> ErrorCode:
    """INVALID_PRODUCER_EPOCH instead of PRODUCER_FENCED, for clients that do not know the latter.

    Older clients would otherwise not notice that another producer has replaced them.
    """
    if error is ErrorCode.producer_fenced and version < first_with_fenced:
        return ErrorCode.invalid_producer_epoch
    return error
