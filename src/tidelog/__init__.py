"""Tidelog: Kafka's high-availability log, written in Python."""

__version__ = "0.1.0"
