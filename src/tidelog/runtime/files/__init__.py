"""Real files: the Disk port over one directory, and removal of large files."""
