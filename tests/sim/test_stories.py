"""Every story matches its transcript and passes. With a mutant (a wrong rule), it fails.

`pytest --rewrite` records the transcripts again. Read the difference before you commit it.
"""

import inspect
from functools import cache
from pathlib import Path

import pytest

from tidelog.sim.mutants import MUTANTS
from tidelog.sim.rules import _place
from tidelog.sim.story import library
from tidelog.sim.story.playing import Played, play

RUNGS = ("truncate-to-hw", "kip-101", "kip-279")
LADDER = {
    # Story -> the old truncation rules of Kafka with which the story fails.
    "a_follower_does_not_cut_to_its_watermark": {"truncate-to-hw"},
    "after_a_power_cut_of_all_no_offset_has_two_values": {"truncate-to-hw"},
    "one_lookup_is_not_enough_after_two_quick_elections": {"kip-101"},
    "a_fetch_from_an_older_epoch_commits_what_is_cut_later": set(RUNGS),
}


@cache
def played(name: str, mutant: str | None = None) -> Played:
    """Play a story once, because its result never changes and some stories are slow."""
    return play(library.story(name), mutant)


def check(seen: Played, name: str, mutant: str | None, rewrite: bool) -> None:
    path = Path(str(library.transcript_of(name, mutant)))
    text = "\n".join(seen.transcript) + "\n"
    if rewrite:
        path.write_text(text)
    assert text.splitlines() == path.read_text().splitlines()


@pytest.mark.parametrize("name", library.names())
def test_story_goes_as_its_transcript_says(name: str, request: pytest.FixtureRequest) -> None:
    assert not played(name).failures
    check(played(name), name, None, request.config.getoption("--rewrite"))


@pytest.mark.parametrize("mutant", MUTANTS)
def test_mutant_is_caught_by_its_story(mutant: str, request: pytest.FixtureRequest) -> None:
    """The story of a mutant fails with the mutant. docs/faults.md has the faults of each."""
    name = MUTANTS[mutant].story
    assert played(name, mutant).failures
    check(played(name, mutant), name, mutant, request.config.getoption("--rewrite"))


@pytest.mark.parametrize("story", LADDER)
def test_each_rung_of_the_ladder_of_truncation_rules_is_caught_where_the_next_one_holds(
    story: str,
) -> None:
    """The old rules fail (F01, F02, F03, F04); the transcripts show that the new rule passes."""
    caught = {rung for rung in RUNGS if played(story, rung).failures}

    assert caught == LADDER[story]


def test_replica_lag_max_messages_makes_the_in_sync_set_flap_and_lag_time_does_not() -> None:
    story = MUTANTS["lag-max-messages"].story

    def changes(seen: Played) -> int:
        return sum("in-sync set" in what for frame in seen.frames for what in frame.happened)

    assert changes(played(story)) == 0
    assert changes(played(story, "lag-max-messages")) >= 4


@pytest.mark.parametrize("mutant", MUTANTS)
def test_a_wrong_rule_fits_in_the_place_of_the_right_one(mutant: str) -> None:
    """The replaced function must exist with the same parameters, so a renamed rule is noticed."""
    for replacement in MUTANTS[mutant].rules().replacements:
        holder, name = _place(replacement.target)
        right = vars(holder)[name]
        if isinstance(right, property):
            assert isinstance(replacement.by, property)
        else:
            assert list(inspect.signature(right).parameters) == list(
                inspect.signature(replacement.by).parameters
            )


def test_the_rules_are_as_they_were_after_a_run_with_a_mutant() -> None:
    places = [
        _place(one.target) for mutant in MUTANTS.values() for one in mutant.rules().replacements
    ]
    before = [vars(holder)[name] for holder, name in places]

    play(library.story("a_fenced_broker_does_not_join_the_in_sync_set"), "fenced-in-isr")

    assert [vars(holder)[name] for holder, name in places] == before
