"""`tidelog simulate --story`: plays a scenario, prints its transcript and writes its page."""

from pathlib import Path

import click

from tidelog.cli.help.suggestions import did_you_mean
from tidelog.cli.simulation.simulate_mutant import known_mutant
from tidelog.model.user_error import UserError
from tidelog.sim.machines.silence import silenced
from tidelog.sim.replay.page import page
from tidelog.sim.story import library
from tidelog.sim.story.language import BadStory, Story, parse
from tidelog.sim.story.phrases import CONDITIONS, STEPS, Phrase
from tidelog.sim.story.playing import Played, play
from tidelog.sim.story.showing import as_run


@silenced()
def tell_story(name: str, mutant: str | None, html: Path | None) -> int:
    """Play a story. Return status 0 if all of its expectations are met."""
    if name == "list":
        return _list()
    if name == "help":
        return _help()
    if mutant is not None:
        known_mutant(mutant)
    try:
        played = play(_story(name), mutant)
    except BadStory as mistake:
        raise UserError(f"{name}, {mistake}") from None
    for line in transcript(played):
        click.echo(line)
    if html is not None:
        html.write_text(page(as_run(played)), encoding="utf-8")
        click.echo(f"\nThe page is in {html}.")
    return 1 if played.failures else 0


def transcript(played: Played) -> list[str]:
    """The lines of a played story, with its title and its result."""
    rules = f" (with the wrong rule {played.mutant})" if played.mutant else ""
    end = [f"FAILED, {failure}" for failure in played.failures] or ["All expectations are met."]
    return [f"{played.story.title}{rules}", "", *played.transcript, "", *end]


def _story(name: str) -> Story:
    """The story in the file with this name, or else the built-in story with this name."""
    path = Path(name)
    if path.exists():
        return parse(path.read_text(encoding="utf-8"))
    if name in library.names():
        return library.story(name)
    near = did_you_mean(name, library.names())
    raise UserError(f"there is no story '{name}'; --story list names them{near}")


def _list() -> int:
    for name in library.names():
        click.echo(name)
        click.echo(f"    {library.story(name).title}")
    return 0


def _help() -> int:
    click.echo(
        "One step per line; a comment (#) explains the step below it, the first is the title."
    )
    for title, phrases in (
        ("Steps", STEPS),
        ("Conditions, after wait until and expect", CONDITIONS),
    ):
        click.echo(f"\n{title}")
        for phrase in phrases:
            click.echo(_told(phrase))
    click.echo("\nA <node> is a number, `the leader`, `leader of orders-0` or `the controller`.")
    return 0


def _told(phrase: Phrase) -> str:
    form = phrase.form.replace("<name:key>", "<key>").replace("<time:span>", "<time>")
    form = form.replace("<number:factor>", "<number>").replace("<node:other>", "<node>")
    form = form.replace("<some>", "<nodes>")
    return f"  {form:<58} {phrase.meaning}".rstrip()
