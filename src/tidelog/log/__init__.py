"""The log on disk: segments, indexes, checkpoints and recovery, all through the Disk port.

Invariant: no module here depends on replication.
"""
