"""Segments of a log: files of record batches, and how they are rolled, read, cut and deleted."""
