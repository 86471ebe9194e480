"""What a node reports: replication events, metrics, counters."""
