"""The log `__cluster_metadata` and its snapshots on this node."""
