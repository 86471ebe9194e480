"""Compaction: keeps the last record of each key, and leaves the same files as Kafka's cleaner."""
