"""The partitions that this node holds: append, fetch, look up, and the in-sync set of each."""
