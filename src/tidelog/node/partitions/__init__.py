"""The partitions that this node holds: appends, fetches, queries and in-sync sets."""
