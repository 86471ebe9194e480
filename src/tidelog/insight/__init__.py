"""Explains the state of a cluster, from observations and from past replication events."""
