"""The partitions that this node follows: one fetcher for each leader broker."""
