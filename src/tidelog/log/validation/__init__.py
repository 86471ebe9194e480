"""Checks of record batches before they are appended."""
