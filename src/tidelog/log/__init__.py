"""A partition's bytes at rest: segments, indexes, recovery, all through the Disk port.

Knows nothing of replication.
"""
