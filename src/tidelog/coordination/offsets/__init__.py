"""Committed offsets: commit, fetch, expiry."""
