"""Resolves paths relative to the user's working directory, not to that of Spark's processes."""

import glob
import os

from tidelog_pipelines.failures import JobFailed
from tidelog_pipelines.settings import has_scheme


def absolute(path: str) -> str:
    """An absolute local path; a path on another file system (s3a://...) is returned unchanged."""
    return path if has_scheme(path) else os.path.abspath(path)


def existing(path: str) -> str:
    """As `absolute`, for input: raises unless a file, directory or pattern match exists."""
    if not has_scheme(path) and not glob.glob(path):
        raise JobFailed(f"{path} does not exist.")
    return absolute(path)
