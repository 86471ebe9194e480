"""The vector engine of the cleaner: all records of a chunk at once, with numpy."""
