"""Where files are: what a user names is relative to the user, and not to Spark's processes."""

import os


def absolute(path: str) -> str:
    """A local path from the root on; a path of another file system (s3a://...) as it is."""
    return path if "://" in path else os.path.abspath(path)
