"""Keeps out of a broker what only tests need."""

import sys
from types import ModuleType
from typing import cast


def keep_test_tools_out() -> None:
    """Call before the first import of kio, in a process of its own.

    kio imports hypothesis wherever it is installed: half a second, and 24 MB in every broker.
    """
    sys.modules.setdefault("hypothesis", cast(ModuleType, None))
