"""Where files are: what a user names is relative to the user, and not to Spark's processes."""

import glob
import os

from tidelog_pipelines.failures import JobFailed


def absolute(path: str) -> str:
    """A local path from the root on; a path of another file system (s3a://...) as it is."""
    return path if "://" in path else os.path.abspath(path)


def existing(path: str) -> str:
    """The same, of something to be read: a file, a directory or a pattern that matches some."""
    if "://" not in path and not glob.glob(path):
        raise JobFailed(f"there is no {path}.")
    return absolute(path)
