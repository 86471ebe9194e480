"""Keeps test libraries out of a broker process."""

import sys
from types import ModuleType
from typing import cast


def keep_test_libraries_out() -> None:
    """Prevent the import of hypothesis; call this before the first import of kio.

    If hypothesis is installed, kio imports it. The import costs every broker 0.5 s and 24 MB.
    """
    sys.modules.setdefault("hypothesis", cast(ModuleType, None))
