"""`tidelog completion`: prints the script that lets a shell complete commands and options."""

import click
from click.shell_completion import get_completion_class

SHELLS = ("bash", "zsh")
PROGRAM = "tidelog"
VARIABLE = "_TIDELOG_COMPLETE"
"""If the shell sets this variable, click prints completions instead of running a command."""


@click.command("completion")
@click.argument("shell", type=click.Choice(SHELLS))
@click.pass_context
def command(context: click.Context, shell: str) -> None:
    """Print the completion script for SHELL. The command `tidelog` must be on the PATH.

    \b
    For bash, add this line to ~/.bashrc:
      eval "$(tidelog completion bash)"
    For zsh, add this line to ~/.zshrc, after compinit:
      eval "$(tidelog completion zsh)"
    """
    completer = get_completion_class(shell)
    assert completer is not None
    click.echo(completer(context.find_root().command, {}, PROGRAM, VARIABLE).source())
