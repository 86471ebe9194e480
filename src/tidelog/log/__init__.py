"""The log on disk: segments, indexes, checkpoints and recovery. All file access uses `Disk`.

Invariant: no module here depends on replication.
"""
