"""Produce, Fetch and look-ups of offsets and producers."""
