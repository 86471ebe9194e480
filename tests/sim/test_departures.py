"""If a leader dies, a client's next Metadata request returns the new leader and all brokers."""

from typing import Any

from kio.schema.metadata.v12.request import MetadataRequestTopic
from tests.sim.messages import ask
from tests.sim.replication import TOPIC, followers_of, isr_is_full, leader_of, make_topic
from tests.sim.talk import Talk, await_true, running

from tidelog.model.ids import NodeId
from tidelog.node.controller.recently_fenced import LISTED_MS, PATIENCE_MS
from tidelog.sim.machines.cluster import SimCluster

METADATA = 3
NOTICED_MS = 5
"""A time within which every node detects a broken connection."""


class Asker:
    """Asks one node for Metadata; `answers` has the leader and the duration of each answer."""

    def __init__(self, cluster: SimCluster, node: NodeId, topic: str | None = TOPIC) -> None:
        self.answers: list[tuple[NodeId, int]] = []
        self.listed: list[NodeId] = []
        self._cluster = cluster
        self._talk = Talk(cluster, node)
        self._topics = None if topic is None else (MetadataRequestTopic(name=topic, topic_id=None),)
        self._talk.ask(self._wish())  # connect before the fault

    def begin(self) -> None:
        asked = self._cluster.world.now

        def answered(answer: Any) -> None:
            [topic] = answer.topics
            self.listed = [broker.node_id for broker in answer.brokers]
            leader = topic.partitions[0].leader_id if topic.partitions else -1
            self.answers.append((leader, self._cluster.world.now - asked))

        self._talk.begin(self._wish(), then=answered)

    def _wish(self) -> Any:
        return ask(
            METADATA,
            topics=self._topics,
            allow_auto_topic_creation=False,
            include_topic_authorized_operations=False,
        )


def test_who_asks_after_a_leader_died_is_told_of_its_successor(seed: int) -> None:
    cluster = running(seed)
    make_topic(cluster)
    await_true(cluster, lambda: isr_is_full(cluster))
    dead, others = leader_of(cluster), followers_of(cluster)
    askers = [Asker(cluster, other.id, topic) for other in others for topic in (TOPIC, None)]

    dead.kill()
    cluster.world.run(NOTICED_MS)
    for asker in askers:
        asker.begin()
    cluster.world.run(2 * PATIENCE_MS)

    for asker in askers:
        [(leader, _)] = asker.answers
        assert leader in {other.id for other in others}


def test_nobody_waits_for_a_successor_that_cannot_be_elected(seed: int) -> None:
    """Two of three nodes are dead, so there is no quorum; Metadata still names the dead leader."""
    cluster = running(seed)
    make_topic(cluster)
    await_true(cluster, lambda: isr_is_full(cluster))
    dead, [also_dead, alive] = leader_of(cluster), followers_of(cluster)
    asker = Asker(cluster, alive.id)

    also_dead.kill()
    dead.kill()
    cluster.world.run(NOTICED_MS)
    asker.begin()
    cluster.world.run(2 * PATIENCE_MS)
    asker.begin()
    cluster.world.run(2 * PATIENCE_MS)

    [(first, waited), (second, waited_again)] = asker.answers
    assert (first, second) == (dead.id, dead.id)
    assert waited <= PATIENCE_MS + NOTICED_MS
    assert waited_again <= NOTICED_MS


def test_other_topics_are_answered_at_once_while_a_successor_is_sought(seed: int) -> None:
    cluster = running(seed)
    make_topic(cluster)
    await_true(cluster, lambda: isr_is_full(cluster))
    asker = Asker(cluster, followers_of(cluster)[0].id, "no-such-topic")

    leader_of(cluster).kill()
    cluster.world.run(NOTICED_MS)
    asker.begin()
    cluster.world.run(2 * PATIENCE_MS)

    [(_, waited)] = asker.answers
    assert waited <= NOTICED_MS


def test_a_connection_that_breaks_while_the_leader_lives_holds_nobody_up(seed: int) -> None:
    cluster = running(seed)
    make_topic(cluster)
    await_true(cluster, lambda: isr_is_full(cluster))
    leader, [follower, _] = leader_of(cluster), followers_of(cluster)
    asker = Asker(cluster, follower.id)

    cluster.network.reset(follower.name, leader.name)
    cluster.world.run(NOTICED_MS)
    asker.begin()
    cluster.world.run(2 * PATIENCE_MS)

    [(answers, waited)] = asker.answers
    assert answers == leader.id
    assert waited < PATIENCE_MS


def test_a_dead_broker_is_listed_for_as_long_as_a_session_of_kafka(seed: int) -> None:
    """librdkafka drops an unlisted broker, and then forgets who leads that broker's partitions."""
    cluster = running(seed)
    make_topic(cluster)
    await_true(cluster, lambda: isr_is_full(cluster))
    dead, [other, _] = leader_of(cluster), followers_of(cluster)
    asker = Asker(cluster, other.id)

    dead.kill()
    cluster.world.run(LISTED_MS // 2)
    asker.begin()
    cluster.world.run(NOTICED_MS)
    assert asker.listed == [1, 2, 3]
    assert asker.answers[-1][0] != dead.id

    cluster.world.run(LISTED_MS)
    asker.begin()
    cluster.world.run(NOTICED_MS)
    assert dead.id not in asker.listed
