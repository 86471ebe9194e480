"""Transactions in simulated clusters: seen whole or not at all, in order, once.

Each wrong rule in this module is a rule that a Kafka-like log has got wrong. The scenario next to
it must fail with the wrong rule, so the scenario shows what the right rule prevents.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import pytest
from tests.sim.messages import batch
from tests.sim.talk import Talk
from tests.sim.transactional_client import (
    PARTITIONS,
    STATE,
    Refused,
    TransactionalProducer,
    await_stable,
    check_seen,
    leader_of,
    transactional_cluster,
)

from tidelog.api import registry
from tidelog.api.registry import Api
from tidelog.coordination.partitioning import partition_for
from tidelog.coordination.transactions.transaction import Transaction
from tidelog.model.errors import ErrorCode
from tidelog.model.ids import TopicPartition
from tidelog.sim.machines.cluster import SimCluster
from tidelog.sim.machines.dice import SeededDice
from tidelog.sim.rules import Replacement, Rules, applied_rules

FENCED = {ErrorCode.producer_fenced, ErrorCode.invalid_producer_epoch}


@contextmanager
def wrong(*rules: tuple[str, Any]) -> Iterator[None]:
    """Run with these wrong rules. The scenario inside must notice them."""
    replacements = tuple(Replacement(target, by) for target, by in rules)
    with applied_rules(Rules("wrong", replacements)), pytest.raises(AssertionError):
        yield


def coordinator(cluster: SimCluster, transactional_id: str) -> int:
    return leader_of(cluster, TopicPartition(STATE, partition_for(transactional_id, 2)))


def restart(cluster: SimCluster, node: int) -> None:
    cluster.hosts[node].kill()
    cluster.world.run(3_000)
    cluster.start(node)


# -- F46: a delayed EndTxn -------------------------------------------------------------------------


def a_late_end_of_the_first_transaction(seed: int) -> None:
    cluster = transactional_cluster(seed)
    producer = TransactionalProducer(cluster, "a")
    producer.init()
    producer.send(0, b"first")
    late = producer.end_request(commits=True)
    producer.end(commits=True)
    producer.send(0, b"second")
    producer.send(1, b"second")
    # The request that the client had repeated arrives now. It must not end the second transaction.
    Talk(cluster, coordinator(cluster, "a")).ask(late, 5)
    cluster.world.run(1_000)
    producer.send(2, b"second")
    producer.end(commits=False)
    check_seen(cluster, [(0, b"first")])


def test_f46_a_late_end_does_not_end_the_next_transaction() -> None:
    a_late_end_of_the_first_transaction(1)


def test_f46_without_an_epoch_per_transaction_a_late_end_commits_what_is_aborted() -> None:
    right = Transaction.prepared

    def prepared(self: Transaction, state: Any, version: int, now: int, *rest: Any) -> Transaction:
        return right(self, state, 0, now)

    rule = ("tidelog.coordination.transactions.transaction:Transaction.prepared", prepared)
    with wrong(rule):
        try:
            a_late_end_of_the_first_transaction(1)
        except Refused as refused:
            raise AssertionError(refused) from refused


# -- F72, F73: no transaction hangs, and a zombie writes nothing -----------------------------------


def a_producer_that_dies(seed: int) -> None:
    cluster = transactional_cluster(seed)
    dead = TransactionalProducer(cluster, "a", timeout_ms=5_000)
    dead.init()
    dead.send(0, b"lost")
    dead.send(1, b"lost")
    plain = TransactionalProducer(cluster, "b")
    plain.init()
    plain.send(0, b"kept")
    plain.end(commits=True)
    cluster.world.run(10_000)
    check_seen(cluster, [(0, b"kept")])
    # The producer was only paused.
    with pytest.raises(Refused) as refused:
        dead.send(0, b"zombie")
    assert refused.value.error in FENCED
    with pytest.raises(Refused) as refused:
        dead.end(commits=True)
    assert refused.value.error in FENCED
    check_seen(cluster, [(0, b"kept")])


def test_f72_the_transaction_of_a_dead_producer_is_aborted_and_the_producer_is_fenced() -> None:
    a_producer_that_dies(2)


def test_f72_without_a_timeout_the_last_stable_offset_stands_still() -> None:
    with wrong(("tidelog.coordination.transactions.machine:abort_late", lambda *_: {})):
        a_producer_that_dies(2)


def a_produce_that_arrives_after_the_abort(seed: int) -> None:
    cluster = transactional_cluster(seed)
    producer = TransactionalProducer(cluster, "a")
    producer.init()
    producer.send(0, b"aborted")
    late = batch(
        b"late",
        producer_id=producer.producer_id,
        producer_epoch=producer.epoch,
        base_sequence=1,
        is_transactional=True,
    )
    producer.end(commits=False)
    await_stable(cluster)
    error = producer.send_raw(0, late)
    assert error in FENCED, error
    # In a partition without any record of the transaction, only the coordinator knows the epoch.
    other = bytearray(late)
    error = producer.send_raw(1, bytes(other))
    assert error in FENCED, error
    producer.send(0, b"next")
    producer.end(commits=True)
    check_seen(cluster, [(0, b"next")])


def test_f73_a_late_produce_of_an_aborted_transaction_is_refused() -> None:
    a_produce_that_arrives_after_the_abort(3)


def test_f73_without_verification_a_late_produce_begins_a_transaction_that_hangs() -> None:
    def unverified(self: Any, place: int, append: Any) -> None:
        return None

    part = "tidelog.node.transactions.transactional_appends:TransactionalAppends"
    with wrong((f"{part}._unverified", unverified)):
        a_produce_that_arrives_after_the_abort(3)


def test_f73_if_leader_and_coordinator_accept_any_epoch_a_late_produce_is_seen() -> None:
    with wrong(
        ("tidelog.log.producers.producers:ProducerStates.refusal", lambda *_, **__: None),
        ("tidelog.coordination.transactions.adding:_refusal", lambda *_: ErrorCode.none),
    ):
        a_produce_that_arrives_after_the_abort(3)


# -- F74, F75: failovers ---------------------------------------------------------------------------


def a_coordinator_that_dies_after_its_decision(seed: int) -> None:
    cluster = transactional_cluster(seed)
    producer = TransactionalProducer(cluster, "a")
    producer.init()
    for index in range(PARTITIONS):
        producer.send(index, b"one")
    # The outcome is decided, and the coordinator dies before it has sent all markers.
    talk = Talk(cluster, coordinator(cluster, "a"))
    asked = talk.begin(producer.end_request(commits=True), 5)
    assert cluster.world.run_until(lambda: asked.is_done, 60_000)
    restart(cluster, coordinator(cluster, "a"))
    check_seen(cluster, [(index, b"one") for index in range(PARTITIONS)])


@pytest.mark.parametrize("number", range(4))
def test_f74_a_decided_commit_is_seen_whole_after_the_coordinator_has_died(number: int) -> None:
    a_coordinator_that_dies_after_its_decision(number)


def test_f74_if_a_successor_forgets_the_markers_a_commit_is_never_seen() -> None:
    machine = "tidelog.coordination.transactions.machine:TransactionMachine"
    with wrong((f"{machine}.loaded", lambda self, at: iter(()))):
        for number in range(4):
            a_coordinator_that_dies_after_its_decision(number)


# -- a workload with aborts, zombies, time-outs and faults -----------------------------------------


@pytest.mark.parametrize("number", [11, 12, 13])
def test_f74_a_workload_is_seen_exactly_once_while_nodes_die(number: int) -> None:
    cluster = transactional_cluster(number)
    dice = SeededDice(number)
    producers = [TransactionalProducer(cluster, name, timeout_ms=8_000) for name in ("a", "b")]
    zombies: list[TransactionalProducer] = []
    committed: list[tuple[int, bytes]] = []
    for producer in producers:
        producer.init()
    for turn in range(14):
        which = turn % 2
        producer = producers[which]
        values = [(dice.below(PARTITIONS), b"%d-%d" % (turn, part)) for part in range(3)]
        try:
            for partition, value in values:
                producer.send(partition, value)
                if dice.below(12) == 0:
                    restart(cluster, 1 + dice.below(3))
            match dice.below(5):
                case 0:
                    producer.end(commits=False)
                case 1:
                    # A new instance takes over and fences the old one, which does not know.
                    zombies.append(producer)
                    producers[which] = TransactionalProducer(cluster, producer.id, 8_000)
                    producers[which].init()
                case _:
                    producer.end(commits=True)
                    committed += values
        except Refused as refused:
            # The transaction has timed out while nodes were down. Nothing of it may be seen.
            if refused.error not in FENCED:
                raise
            producer.init()
        for zombie in zombies:
            with pytest.raises(Refused):
                zombie.send(0, b"zombie")
    check_seen(cluster, committed)


# -- brokers of other versions ---------------------------------------------------------------------


def test_markers_reach_brokers_that_do_not_know_the_newest_version(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """As an Apache Kafka broker before 4.2, these know WriteTxnMarkers in version 1 only."""
    key, supports = 27, Api.supports

    def supports_version_1(self: Api, version: int) -> bool:
        return version == 1 if self.key == key else supports(self, version)

    for kind, advertised in registry._ADVERTISED.items():
        older = tuple(
            replace(one, max_version=1) if one.api_key == key else one for one in advertised
        )
        monkeypatch.setitem(registry._ADVERTISED, kind, older)
    with applied_rules(
        Rules("older", (Replacement("tidelog.api.registry:Api.supports", supports_version_1),))
    ):
        cluster = transactional_cluster(5)
        producer = TransactionalProducer(cluster, "a")
        producer.init()
        for index in range(PARTITIONS):
            producer.send(index, b"one")
        producer.end(commits=True)
        check_seen(cluster, [(index, b"one") for index in range(PARTITIONS)])
