"""Resolves paths relative to the user's working directory.

Spark's processes may have another working directory.
"""

import glob
import os

from tidelog_pipelines.failures import JobFailed
from tidelog_pipelines.settings import has_scheme


def absolute(path: str) -> str:
    """An absolute local path. A path on another file system (s3a://...) is returned unchanged."""
    return path if has_scheme(path) else os.path.abspath(path)


def existing(path: str) -> str:
    """As `absolute`, for a path to read. Raises if no file or directory matches the path."""
    if not has_scheme(path) and not glob.glob(path):
        raise JobFailed(f"{path} does not exist.")
    return absolute(path)
