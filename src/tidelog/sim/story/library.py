"""The stories that come with Tidelog, each with its transcript."""

from importlib.resources import files
from importlib.resources.abc import Traversable

from tidelog.sim.story.language import Story, parse

_SHELF = files("tidelog.sim") / "stories"
SUFFIX = ".story"


def names() -> list[str]:
    return sorted(
        one.name.removesuffix(SUFFIX) for one in _SHELF.iterdir() if one.name.endswith(SUFFIX)
    )


def story(name: str) -> Story:
    return parse((_SHELF / f"{name}{SUFFIX}").read_text(encoding="utf-8"))


def transcript_of(name: str, mutant: str | None = None) -> Traversable:
    """The transcript of a story that was played with the right rules, or with a mutant."""
    return _SHELF / (f"{name}.{mutant}.out" if mutant else f"{name}.out")
