"""The name of the `tidelog` command in printed examples."""

import sys
from pathlib import Path

NAME = "tidelog"
CHECKOUT = Path(__file__).parents[4]


def program() -> str:
    """`tidelog` if that command is installed, otherwise the path of the checkout's launcher."""
    launcher = CHECKOUT / NAME
    if Path(sys.argv[0]).name == NAME or not launcher.is_file():
        return NAME
    here = Path(NAME)
    return f"./{NAME}" if here.is_file() and here.samefile(launcher) else str(launcher)
