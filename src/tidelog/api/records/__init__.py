"""Produce, Fetch, and lookups of offsets and producers."""
