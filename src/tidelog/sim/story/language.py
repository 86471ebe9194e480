"""Parses a story. Each line is one step, and a comment explains the step that follows it.

The parser finds every error that can be found without playing the story, and reports its line.
"""

from dataclasses import dataclass, field
from difflib import get_close_matches

from tidelog.sim.story.phrases import CONDITIONS, STEPS, Phrase


class BadStory(Exception):
    """An error in a story, with the number of its line."""

    def __init__(self, line: int, message: str) -> None:
        super().__init__(f"line {line}: {message}")
        self.line = line


@dataclass(frozen=True, slots=True)
class Condition:
    kind: str
    text: str
    places: dict[str, str]


@dataclass(frozen=True, slots=True)
class Step:
    line: int
    kind: str
    text: str
    places: dict[str, str]
    condition: Condition | None
    note: str
    """The comment above the step."""


@dataclass(slots=True)
class Story:
    title: str
    about: str
    """The first comment after the title, up to an empty line."""
    steps: list[Step] = field(default_factory=list)


SETUP = ("brokers", "controllers", "seed", "mutant", "set", "delay")


def parse(text: str) -> Story:
    """Parse a story; raises BadStory."""
    lines = text.splitlines()
    title, about, first = _opening(lines)
    story = Story(title, about)
    note: list[str] = []
    for number, line in enumerate(lines[first:], first + 1):
        stripped = line.strip()
        if stripped.startswith("#"):
            note.append(stripped.lstrip("# "))
        elif not stripped:
            note.clear()
        else:
            story.steps.append(_step(number, stripped, " ".join(note)))
            note.clear()
    _check(story)
    return story


def _opening(lines: list[str]) -> tuple[str, str, int]:
    """The title and the description from the first comment, and the number of its lines."""
    first = 0
    comments = []
    while first < len(lines) and lines[first].startswith("#"):
        comments.append(lines[first].lstrip("# ").strip())
        first += 1
    if not comments:
        raise BadStory(1, "a story begins with a comment: its title")
    return comments[0], " ".join(comments[1:]), first


def _step(number: int, text: str, note: str) -> Step:
    text = " ".join(text.split("#")[0].split())
    for phrase in STEPS:
        match = phrase.pattern.fullmatch(text)
        if match is not None:
            places = {key: value for key, value in match.groupdict().items() if value is not None}
            condition = _condition(number, places.pop("condition", None))
            return Step(number, phrase.name, text, places, condition, note)
    raise BadStory(number, _not_understood(text, STEPS, "step"))


def _condition(number: int, text: str | None) -> Condition | None:
    if text is None:
        return None
    for phrase in CONDITIONS:
        match = phrase.pattern.fullmatch(text)
        if match is not None:
            return Condition(phrase.name, text, match.groupdict())
    raise BadStory(number, _not_understood(text, CONDITIONS, "condition"))


def _not_understood(text: str, phrases: tuple[Phrase, ...], what: str) -> str:
    word = text.split()[0]
    forms = [phrase.form for phrase in phrases if phrase.form.split()[0] == word]
    if forms:
        return f"{text!r} is not understood; write {' or '.join(forms)}"
    known = sorted({phrase.form.split()[0] for phrase in phrases if phrase.form[0] != "<"})
    near = get_close_matches(word, known, 1)
    hint = f"did you mean {near[0]!r}?" if near else f"there are: {', '.join(known)}"
    return f"no {what} begins with {word!r}; {hint}"


# -- consistency of steps --------------------------------------------------------------------------


def _check(story: Story) -> None:
    if not story.steps or story.steps[0].kind != "brokers":
        line = story.steps[0].line if story.steps else 1
        raise BadStory(line, "the first step says how many brokers there are: brokers 3")
    brokers = int(story.steps[0].places["number"])
    if not 1 <= brokers <= 9:
        raise BadStory(story.steps[0].line, "there can be 1 to 9 brokers")
    controllers, has_begun = 1, False
    topics: set[str] = set()
    for step in story.steps:
        is_setup = step.kind in SETUP
        if is_setup and has_begun:
            raise BadStory(step.line, f"{step.kind!r} comes before the first topic")
        has_begun = has_begun or not is_setup
        if step.kind == "controllers":
            controllers = int(step.places["number"])
            if not 1 <= controllers <= 9:
                raise BadStory(step.line, "there can be 1 to 9 controllers")
        if step.kind in ("topic", "topic_rf"):
            topics.add(f"{step.places['name']}-0")
        for places in (step.places, step.condition.places if step.condition else {}):
            _check_places(step, places, brokers, controllers, topics)


def _check_places(
    step: Step, places: dict[str, str], brokers: int, controllers: int, topics: set[str]
) -> None:
    if step.kind == "topic_rf" and int(places.get("factor", "0")) > brokers:
        raise BadStory(step.line, f"there are {brokers} brokers")
    for key in ("node", "nodes", "other", "some"):
        for word in places.get(key, "").replace(",", " ").split():
            is_known = not word.isdigit() or (
                1 <= int(word) <= brokers or 101 <= int(word) <= 100 + controllers
            )
            if not is_known:
                raise BadStory(step.line, f"there is no node {word}")
        _check_partition(step, places.get(key, "").removeprefix("leader of "), topics, key)
    if "partition" in places:
        _check_partition(step, places["partition"], topics, "partition")
    needs_topic = step.kind in ("write", "begin", "burst") and "partition" not in places
    if needs_topic and not topics:
        raise BadStory(step.line, "there is no topic yet: topic orders on 1 2 3")


def _check_partition(step: Step, text: str, topics: set[str], key: str) -> None:
    is_one = key == "partition" or ("-" in text and " " not in text)
    if is_one and text not in topics:
        raise BadStory(step.line, f"there is no partition {text} yet")
