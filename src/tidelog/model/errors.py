"""Kafka's error codes. An error that can occur in operation is a value, never an exception."""

from kio.schema.errors import ErrorCode

__all__ = ["ErrorCode"]
