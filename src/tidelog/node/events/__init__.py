"""The replication events, metrics and counters of a node."""
