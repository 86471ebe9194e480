"""Indexes of a segment: by offset, by time, aborted transaction; derived from the log."""
