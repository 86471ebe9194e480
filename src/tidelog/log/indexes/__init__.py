"""The indexes of a segment, by offset, by time and by aborted transaction, derived from the log."""
