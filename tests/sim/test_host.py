"""The simulated host behaves like a real host: backpressure, pauses, and the end of a process."""

from tests.sim.cluster_steps import created
from tests.sim.messages import ask, batch, create_topic, fetch_from, produce_to
from tests.sim.talk import Talk, await_true, running

API_VERSIONS = ask(18, client_software_name="test", client_software_version="1")


def test_a_client_with_too_much_in_work_is_read_later_and_answered_in_full() -> None:
    cluster = running(nodes=1)
    talk = Talk(cluster, 1)
    assert created(talk.ask(create_topic("orders")))
    waiting = [talk.begin(fetch_from("orders", max_wait_ms=20_000)) for _ in range(150)]
    cluster.world.run(1_000)
    assert not any(one.is_done for one in waiting)

    Talk(cluster, 1).ask(produce_to("orders", batch(b"x")))
    cluster.world.run(1_000)

    assert all(one.answer is not None for one in waiting)


def test_a_paused_process_neither_refuses_nor_answers_and_then_does_all_at_once() -> None:
    cluster = running(nodes=1)
    host, old = cluster.hosts[1], Talk(cluster, 1)
    assert old.ask(API_VERSIONS).api_keys
    host.pause()
    new = Talk(cluster, 1)
    asked = [old.begin(API_VERSIONS), new.begin(API_VERSIONS)]
    cluster.world.run(5_000)
    assert not any(one.is_done for one in asked)
    assert not new.is_lost

    host.resume()
    cluster.world.run(50)

    assert all(one.answer is not None for one in asked)


def test_a_client_that_gave_up_on_a_paused_process_is_not_waited_for() -> None:
    cluster = running(nodes=1)
    host = cluster.hosts[1]
    host.pause()
    asked = Talk(cluster, 1, patience_ms=1_000).begin(API_VERSIONS)
    cluster.world.run(2_000)
    assert asked.is_done
    assert asked.answer is None

    host.resume()

    assert Talk(cluster, 1).ask(API_VERSIONS).api_keys


def test_a_killed_process_ends_its_connections_and_refuses_new_ones() -> None:
    cluster = running(nodes=1)
    talk = Talk(cluster, 1)
    assert created(talk.ask(create_topic("orders")))
    waiting = talk.begin(fetch_from("orders", max_wait_ms=20_000))
    cluster.world.run(100)

    cluster.hosts[1].kill()
    new = Talk(cluster, 1)
    cluster.world.run(50)

    assert waiting.is_done
    assert waiting.answer is None
    assert talk.is_lost
    assert new.is_lost


def test_a_process_that_ends_by_itself_says_how() -> None:
    cluster = running(nodes=1)
    host = cluster.hosts[1]
    assert created(Talk(cluster, 1).ask(create_topic("orders", flush_messages="1")))
    host.disk.faults.fails_sync = True
    Talk(cluster, 1).begin(produce_to("orders", batch(b"x")))

    await_true(cluster, lambda: not host.is_up)

    assert host.exit is not None
    assert host.exit.status == 1
    assert "fsync failed" in host.exit.reason
