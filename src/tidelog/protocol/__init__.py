"""Frames, message codecs and the record batch header. Does no I/O."""
