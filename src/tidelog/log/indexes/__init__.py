"""The indexes of a segment by offset, time and aborted transaction, all derived from the log."""
