"""Kafka's error codes: what can happen in operation is a value, never an exception."""

from kio.schema.errors import ErrorCode

__all__ = ["ErrorCode"]
