"""The log on disk: segments, indexes, checkpoints and recovery. All file access uses `Disk`.

Invariant: no module of this package depends on replication.
"""
