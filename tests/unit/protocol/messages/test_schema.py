"""Message classes are loaded on first use, and loading may fail."""

import errno

import pytest

from tidelog.protocol.messages import schema
from tidelog.protocol.messages.schema import CannotLoad, request_class, response_class


def test_f65_a_message_that_cannot_be_loaded_is_no_error_of_a_disk(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def refuse(*_: int) -> None:
        raise OSError(errno.EMFILE, "Too many open files")

    request_class.cache_clear()
    response_class.cache_clear()
    with monkeypatch.context() as patched:
        patched.setattr(schema, "load_request_schema", refuse)
        patched.setattr(schema, "load_response_schema", refuse)
        with pytest.raises(CannotLoad, match="Too many open files"):
            request_class(3, 1)
        with pytest.raises(CannotLoad, match="Too many open files"):
            response_class(3, 1)
    assert request_class(3, 1).__name__ == "MetadataRequest"
    assert response_class(3, 1).__name__ == "MetadataResponse"
