"""The story language: its steps, and the messages for lines that it does not understand."""

import pytest

from tidelog.sim.story.language import BadStory, parse
from tidelog.sim.story.phrases import CONDITIONS, STEPS

OPENING = "# A title\n# and what it is about\n\nbrokers 3\ntopic orders on 1 2 3 min-isr 2\n"


def test_a_story_has_a_title_what_it_is_about_and_steps_with_notes() -> None:
    story = parse(OPENING + "# Somebody dies.\nkill the leader\nexpect lost 0\n")

    assert story.title == "A title"
    assert story.about == "and what it is about"
    brokers, topic, kill, expect = story.steps
    assert brokers.places == {"number": "3"}
    assert topic.places == {"name": "orders", "nodes": "1 2 3", "number": "2"}
    assert (kill.note, kill.line) == ("Somebody dies.", 7)
    assert expect.condition is not None
    assert expect.condition.kind == "lost"


def test_a_topic_takes_configs_of_its_own() -> None:
    story = parse("# t\nbrokers 3\ntopic logs rf 2 flush.messages=1 min.insync.replicas=1\n")

    assert story.steps[1].places == {
        "name": "logs",
        "factor": "2",
        "configs": "flush.messages=1 min.insync.replicas=1",
    }


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ("kil 1", "line 6: no step begins with 'kil'; did you mean 'kill'?"),
        ("kill", "line 6: 'kill' is not understood; write kill <some>"),
        ("kill 4", "line 6: there is no node 4"),
        ("kill 101 102", "line 6: there is no node 102"),
        ("write 3 to payments-0", "line 6: there is no partition payments-0 yet"),
        ("kill leader of payments-0", "line 6: there is no partition payments-0 yet"),
        ("expect leader of orders-0 equals 2", "line 6: 'leader of orders-0 equals 2' is not"),
        ("expect peace", "line 6: no condition begins with 'peace'; there are: "),
        ("seed 3", "line 6: 'seed' comes before the first topic"),
        ("wait 3 hours", "line 6: 'wait 3 hours' is not understood"),
        ("topic big rf 4", "line 6: there are 3 brokers"),
    ],
)
def test_a_line_that_is_wrong_is_named_with_what_would_be_right(line: str, says: str) -> None:
    with pytest.raises(BadStory) as refused:
        parse(OPENING + line + "\n")

    assert str(refused.value).startswith(says)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("brokers 3\n", "line 1: a story begins with a comment: its title"),
        ("# t\nkill 1\n", "line 2: the first step says how many brokers there are"),
        ("# t\n", "line 1: the first step says how many brokers there are"),
        ("# t\nbrokers 12\n", "line 2: there can be 1 to 9 brokers"),
        ("# t\nbrokers 3\nwrite 1\n", "line 3: there is no topic yet"),
    ],
)
def test_a_story_without_its_beginning_is_refused(text: str, says: str) -> None:
    with pytest.raises(BadStory, match=r"line \d+") as refused:
        parse(text)

    assert str(refused.value).startswith(says)


def test_every_form_has_a_name_of_its_own() -> None:
    for phrases in (STEPS, CONDITIONS):
        assert len({phrase.name for phrase in phrases}) == len(phrases)
