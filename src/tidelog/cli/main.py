"""The entry point: finds the command, runs it, and prints every failure as one sentence.

A broker starts through this module. To start fast, the module imports only the command that runs.
For `serve` with only --config and --override, the module does not even import click.
"""

import os
import sys
from collections.abc import Callable

from tidelog.model.user_error import UserError
from tidelog.runtime.no_test_libraries import keep_test_libraries_out


def main() -> int:
    keep_test_libraries_out()
    try:
        return run(sys.argv[1:])
    except KeyboardInterrupt:
        return 130
    except BrokenPipeError:
        # The reader has closed the pipe, so the interpreter must not flush to it at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0


def run(arguments: list[str]) -> int:
    """Run one command line and return its exit status."""
    if arguments[:1] == ["serve"]:
        from tidelog.cli.serving import plain_form, serve

        if (plain := plain_form(arguments[1:])) is not None:
            return reported(lambda: serve(*plain))
    from tidelog.cli.commands import invoke

    return reported(lambda: invoke(arguments))


def reported(command: Callable[[], int]) -> int:
    """Run the command. On an error, print one sentence on stderr and return 1."""
    try:
        return command()
    except UserError as failure:
        sentence = str(failure)
    except BrokenPipeError:
        raise
    except OSError as error:
        sentence = f"{error.filename}: {error.strerror}" if error.filename else str(error)
    except Exception as bug:
        if os.environ.get("TIDELOG_DEBUG"):
            raise
        sentence = (
            f"this is a bug in Tidelog: {type(bug).__name__}: {bug} "
            "(TIDELOG_DEBUG=1 shows where it happened)"
        )
    print(f"tidelog: {sentence}", file=sys.stderr)
    return 1


if __name__ == "__main__":
    sys.exit(main())
