"""Segments of a log: files of record batches, how they roll, are read, cut and deleted."""
