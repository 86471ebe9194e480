"""Writes the micro-batches of a streaming query to a topic, each record exactly once (F93)."""

from tidelog_pipelines.sinks.transactional.sink import TransactionalSink

__all__ = ["TransactionalSink"]
