"""Changes of the image that affect more partitions than a node processes at once."""

from typing import Any

import pytest
from tests.sim.messages import batch, create_topic, delete_topic, fetch_from, produce_to, records_in
from tests.unit.node.bench import Bench

from tidelog.model.errors import ErrorCode
from tidelog.node.partitions import assignments


def only(answer: Any) -> Any:
    [(_, [partition])] = answer.topics
    return partition


def test_nothing_is_written_to_or_read_from_the_namesake_of_a_deleted_topic(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """F52: the node gets deletion and creation at once, and processes the last partition late."""
    node = Bench()
    node.ask(create_topic("orders", 3))
    node.ask(produce_to("orders", {2: batch(b"old")}))
    monkeypatch.setattr(assignments, "PARTITIONS_PER_TURN", 1)
    for change in (delete_topic("orders"), create_topic("orders", 3)):
        node.send(node.connect(), change)
    node.flush()

    written = node.ask(produce_to("orders", {2: batch(b"new")}))
    read = node.ask(fetch_from("orders", {2: 0}))

    assert only(written).error is only(read).error is ErrorCode.not_leader_or_follower
    node.settle()
    assert only(node.ask(produce_to("orders", {2: batch(b"new")}))).error is ErrorCode.none
    read = node.ask(fetch_from("orders", {2: 0}))
    assert [record.value for record in records_in(only(read).records)] == [b"new"]
