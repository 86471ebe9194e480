"""Cluster metadata: records, an immutable image, decide and apply. Pure."""
