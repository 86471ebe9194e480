"""The ready queue: actions run one after another, in order, and never inside each other."""

from collections.abc import Callable

import pytest

from tidelog.node.ready import ReadyQueue


def test_what_becomes_ready_runs_in_order_after_the_action_that_made_it_ready() -> None:
    ready, done = ReadyQueue(), list[str]()

    def first() -> None:
        ready.add((second, ("answer",)))
        ready.add((done.append, ("third",)))
        done.append("first")

    def second(text: str) -> None:
        ready.add((done.append, ("fourth",)))
        done.append(text)

    ready.run(first)
    assert done == ["first", "answer", "third", "fourth"]


def test_a_callback_for_later_only_puts_its_action_on_the_queue() -> None:
    ready, done = ReadyQueue(), list[int]()
    callback: Callable[[int], None] = ready.later(done.append)

    def call_back() -> None:
        callback(1)
        assert done == []

    ready.run(call_back)
    assert done == [1]


def test_an_action_inside_another_is_refused() -> None:
    ready = ReadyQueue()
    with pytest.raises(AssertionError, match="was started inside another action"):
        ready.run(ready.run, print)
    ready.run(lambda: None)


def test_a_bug_in_one_action_is_raised_after_the_others_have_run() -> None:
    ready, done = ReadyQueue(OSError), list[int]()

    def buggy() -> None:
        ready.add((done.append, (1,)))
        raise ValueError("a bug")

    with pytest.raises(ValueError, match="a bug"):
        ready.run(buggy)
    assert done == [1]


def test_after_a_fatal_failure_nothing_more_runs() -> None:
    ready, done = ReadyQueue(OSError), list[int]()

    def failing() -> None:
        ready.add((done.append, (1,)))
        raise OSError("the disk has failed")

    with pytest.raises(OSError, match="the disk has failed"):
        ready.run(failing)
    ready.run(lambda: done.append(2))
    assert done == [2]
