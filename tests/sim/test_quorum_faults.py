"""Faults of controllers and brokers on three simulated nodes, with their numbers in docs/faults.md.

At the end of every test, all running nodes have the same image, and this image contains every
acknowledged change.
"""

from tests.sim.cluster_steps import created, images_agree
from tests.sim.controllers import SESSION_MS, another, await_new_controller, only_controller
from tests.sim.messages import ask, create_topic
from tests.sim.talk import Talk, await_ready, await_true, running

from tidelog.model.errors import ErrorCode
from tidelog.sim.machines.cluster import SimCluster
from tidelog.sim.machines.host import SimHost


class Creations:
    """Creates topics through one node after another, and keeps the acknowledged topics."""

    def __init__(self, cluster: SimCluster, every_ms: int = 50) -> None:
        self.acknowledged: list[str] = []
        self.asked = 0
        self._cluster = cluster
        self._every_ms = every_ms
        self._is_on = True
        self._create()

    def stop(self) -> None:
        self._is_on = False

    def _create(self) -> None:
        if not self._is_on:
            return
        name = f"topic-{self.asked:03}"
        up = [host for host in self._cluster.up if not host.is_paused]
        node = up[self.asked % len(up)].id
        self.asked += 1

        def answered(answer: object) -> None:
            if created(answer):
                self.acknowledged.append(name)

        talk = Talk(self._cluster, node)
        talk.begin(create_topic(name, 2, 2), version=4, then=answered)
        self._cluster.world.after(self._every_ms, self._create)


def check_nothing_is_lost_or_half_made(cluster: SimCluster, creations: Creations) -> None:
    creations.stop()
    await_ready(cluster)
    cluster.world.run(3_000)
    await_true(cluster, lambda: images_agree(cluster))
    for host in cluster.up:
        topics = host.node.image.topics
        assert set(creations.acknowledged) <= set(topics)
        assert all(len(topic.partitions) == 2 for topic in topics.values())
        assert all(
            placed.has_leader for topic in topics.values() for placed in topic.partitions.values()
        )


# -- faults of the active controller ---------------------------------------------------------------


def test_the_controller_is_killed_while_topics_are_created(seed: int) -> None:
    cluster = running(seed)
    creations = Creations(cluster)
    cluster.world.run(200 + seed)
    old = only_controller(cluster)

    old.kill()
    new = await_new_controller(cluster, old, limit_ms=500)
    before = len(creations.acknowledged)
    cluster.world.run(1_000)

    assert new is not old
    assert len(creations.acknowledged) > before, "the new controller decides nothing"
    cluster.start()
    check_nothing_is_lost_or_half_made(cluster, creations)


def test_the_controller_loses_power_while_topics_are_created(seed: int) -> None:
    cluster = running(seed)
    creations = Creations(cluster)
    cluster.world.run(200 + seed)
    old = only_controller(cluster)

    old.lose_power()
    await_new_controller(cluster, old)
    cluster.world.run(1_000)

    cluster.start()
    check_nothing_is_lost_or_half_made(cluster, creations)


def test_a_controller_cut_off_from_everyone_steps_down_and_does_no_harm(seed: int) -> None:
    cluster = running(seed)
    creations = Creations(cluster)
    cluster.world.run(200)
    old = only_controller(cluster)

    cluster.network.isolate(old.name)
    new = await_new_controller(cluster, old)
    creations.stop()
    await_true(cluster, lambda: not old.node.is_active_controller, 10_000)
    cluster.world.run(2_000)
    assert only_controller(cluster) is new
    cluster.network.heal()

    check_nothing_is_lost_or_half_made(cluster, creations)


def test_a_controller_that_hears_but_is_not_heard_steps_down(seed: int) -> None:
    """The controller's answers do not arrive, so no node fetches from it any more."""
    cluster = running(seed)
    creations = Creations(cluster)
    cluster.world.run(200)
    old = only_controller(cluster)

    for host in cluster.hosts.values():
        if host is not old:
            cluster.network.cut(old.name, host.name)
    await_new_controller(cluster, old)
    await_true(cluster, lambda: not old.node.is_active_controller, 10_000)
    cluster.network.heal()

    check_nothing_is_lost_or_half_made(cluster, creations)


def test_a_controller_that_sleeps_is_replaced_and_steps_down_when_it_wakes(seed: int) -> None:
    cluster = running(seed)
    creations = Creations(cluster)
    cluster.world.run(200)
    old = only_controller(cluster)

    old.pause()
    new = await_new_controller(cluster, old)
    cluster.world.run(1_000)
    creations.stop()
    cluster.world.run(9_000)
    old.resume()
    cluster.world.run(100)

    assert only_controller(cluster) is new, "it went on as if nothing had happened"
    check_nothing_is_lost_or_half_made(cluster, creations)


def test_what_a_sleeping_controller_had_appended_alone_is_dropped_and_refused() -> None:
    """The change was never committed, so no node has it, and its client gets no success."""
    cluster = running(1)
    old = only_controller(cluster)
    cluster.network.isolate(old.name)
    cluster.network.delay_ms = 1
    talk = Talk(cluster, old.id, name=old.name)
    asked = talk.begin(create_topic("never", 1, 1, timeout_ms=5_000))
    cluster.world.run(50)
    assert not asked.is_done

    await_new_controller(cluster, old)
    cluster.network.heal()
    await_true(cluster, lambda: asked.is_done)
    cluster.world.run(5_000)
    await_true(cluster, lambda: images_agree(cluster))

    # A retry at the new controller may create the topic; then the client must get success.
    made = "never" in cluster.hosts[1].node.image.topics
    assert made == created(asked.answer)


def test_two_of_three_down_nothing_is_decided_and_all_goes_on_when_they_are_back() -> None:
    cluster = running(2)
    for host in list(cluster.hosts.values())[1:]:
        host.kill()
    cluster.world.run(5_000)

    answer = Talk(cluster, 1).ask(create_topic("orders"))
    assert answer.topics[0].error_code is ErrorCode.request_timed_out
    assert cluster.controllers == []

    cluster.start()
    await_ready(cluster)
    assert created(Talk(cluster, 1).ask(create_topic("orders")))


# -- faults of the quorum --------------------------------------------------------------------------


def test_f36_a_voter_back_from_a_partition_does_not_disturb_the_controller(seed: int) -> None:
    cluster = running(seed)
    controller = only_controller(cluster)
    away = another(cluster, controller)
    epoch = controller.node.image.epoch
    cluster.network.isolate(away.name)
    cluster.world.run(30_000)
    assert only_controller(cluster) is controller

    cluster.network.heal()
    creations = Creations(cluster)
    cluster.world.run(1_000)
    creations.stop()
    cluster.world.run(4_000)

    assert only_controller(cluster) is controller
    assert controller.node.image.epoch == epoch, "it began an epoch of its own"
    check_nothing_is_lost_or_half_made(cluster, creations)


def test_f40_a_voter_with_a_wiped_disk_does_not_elect_a_leader_that_lacks_records(
    seed: int,
) -> None:
    cluster = running(seed)
    leader = only_controller(cluster)
    lagging = another(cluster, leader)
    wiped = another(cluster, leader, lagging)
    cluster.network.isolate(lagging.name)
    assert created(Talk(cluster, leader.id).ask(create_topic("orders", 1, 1)))
    leader.kill()
    wiped.kill()
    wiped.wipe()
    cluster.network.heal()

    wiped.start()
    cluster.world.run(20_000)
    assert cluster.controllers == [], "elected with the vote of a wiped disk"

    leader.start()
    await_ready(cluster)
    assert all("orders" in host.node.image.topics for host in cluster.up)


def test_f41_a_broker_with_much_to_replay_is_not_fenced_while_it_starts() -> None:
    """The session begins only when the broker has read up to its registration and is unfenced."""
    cluster = running(1)
    talk = Talk(cluster, 1)
    for number in range(30):
        assert created(talk.ask(create_topic(f"topic-{number}", 5, 3)))
    restarting = another(cluster, only_controller(cluster))
    restarting.kill()
    await_true(cluster, lambda: is_fenced(cluster, restarting))

    fenced_again = []
    restarting.start()
    await_ready(cluster)
    for _ in range(100):
        cluster.world.run(100)
        fenced_again.append(is_fenced(cluster, restarting))

    assert not any(fenced_again)


def test_f42_a_node_answers_on_its_ports_before_there_is_a_quorum() -> None:
    cluster = running(1)
    for host in cluster.hosts.values():
        host.kill()
    cluster.start(2)

    client = Talk(cluster, 2).ask(ask(18, client_software_name="t", client_software_version="1"))
    peer = Talk(cluster, 2, "CONTROLLER").ask(
        ask(18, client_software_name="t", client_software_version="1")
    )

    assert client.error_code is peer.error_code is ErrorCode.none
    assert not cluster.is_ready


# -- faults of brokers -----------------------------------------------------------------------------


def is_fenced(cluster: SimCluster, host: SimHost) -> bool:
    """Whether all other running nodes know that the broker is fenced."""
    return all(
        other.node.image.brokers[host.id].fenced for other in cluster.up if other is not host
    )


def test_a_sleeping_broker_is_fenced_within_its_session_and_comes_back(seed: int) -> None:
    cluster = running(seed)
    broker = another(cluster, only_controller(cluster))
    broker.pause()

    await_true(cluster, lambda: is_fenced(cluster, broker), SESSION_MS + 500)
    broker.resume()

    await_true(cluster, lambda: not is_fenced(cluster, broker), SESSION_MS)
    await_true(cluster, lambda: images_agree(cluster))


def test_a_sleeping_broker_that_was_the_controller_is_fenced_as_soon_as_any_other(
    seed: int,
) -> None:
    """The new controller gives the old one only a heartbeat interval, not a whole session."""
    cluster = running(seed)
    old = only_controller(cluster)
    old.pause()

    await_true(cluster, lambda: is_fenced(cluster, old), SESSION_MS + 500)
    old.resume()

    await_true(cluster, lambda: not is_fenced(cluster, old), SESSION_MS)
    await_true(cluster, lambda: images_agree(cluster))


def test_a_killed_broker_is_fenced_at_once_since_its_port_refuses(seed: int) -> None:
    cluster = running(seed)
    broker = another(cluster, only_controller(cluster))
    broker.kill()

    await_true(cluster, lambda: is_fenced(cluster, broker), 100)


def test_a_broker_whose_connection_breaks_is_not_fenced_while_its_port_answers() -> None:
    cluster = running(1)
    controller = only_controller(cluster)
    broker = another(cluster, controller)
    for _ in range(20):
        cluster.network.reset(broker.name, controller.name)
        cluster.world.run(200)
        assert not is_fenced(cluster, broker)


def test_f16_a_fenced_replica_leads_nothing_and_is_in_no_in_sync_set(seed: int) -> None:
    cluster = running(seed)
    controller = only_controller(cluster)
    fenced = another(cluster, controller)
    assert created(Talk(cluster, controller.id).ask(create_topic("old", 6, 3)))
    fenced.pause()
    await_true(cluster, lambda: is_fenced(cluster, fenced))

    answer = Talk(cluster, controller.id).ask(create_topic("new", 6, 2))
    fenced.resume()

    assert created(answer)
    for placed in controller.node.image.topics["old"].partitions.values():
        assert fenced.id not in (placed.leader, *placed.isr)
    for placed in controller.node.image.topics["new"].partitions.values():
        assert fenced.id not in (placed.leader, *placed.isr)


def test_f17_a_broker_back_before_it_was_missed_is_a_new_broker(seed: int) -> None:
    """The power loss may have cost records, so the new process is in no in-sync set at first."""
    cluster = running(seed)
    controller = only_controller(cluster)
    broker = another(cluster, controller)
    on = [[broker.id, controller.id]]
    assert created(Talk(cluster, controller.id).ask(create_topic("orders", on=on)))
    cluster.world.run(1_000)
    old_epoch = controller.node.image.brokers[broker.id].epoch

    broker.lose_power()
    broker.start()
    seen = []
    for _ in range(4_000):
        cluster.world.run(1)
        image = controller.node.image
        placed = image.topics["orders"].partitions[0]
        if image.brokers[broker.id].epoch != old_epoch:
            seen.append(placed)
    await_ready(cluster)

    assert seen, "it was never registered anew"
    assert broker.id not in (seen[0].leader, *seen[0].isr)
    assert seen[0].leader == controller.id
