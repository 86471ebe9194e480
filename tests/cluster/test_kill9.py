"""kill -9 under load, repeatedly: every acknowledged record is at its acknowledged offset.

The page cache survives the process, so no acknowledged batch may be lost, whatever the flush
policy is. The simulator tests that flush.messages=1 also survives a power loss. `--kills 50` is the
long run.
"""

import time
from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest
from tests.clients.librdkafka import create, read_messages, watermarks
from tests.clients.systems import Broker
from tests.cluster.load import NUMBER, NumberedLoad

Found = list[tuple[int, int]]


@pytest.fixture
def kills(request: pytest.FixtureRequest) -> int:
    return int(request.config.getoption("--kills"))


def kill_under_load(broker: Broker, loads: list[NumberedLoad], kills: int) -> None:
    """Kill the broker at different points of the load, and restart it each time."""
    for turn in range(kills):
        for load in loads:
            load.await_acks(20 + 37 * turn % 400)
        broker.kill()
        broker.start()
    for load in loads:
        load.await_acks(20)


def read_all(broker: Broker, topic: str) -> Found:
    """(producer, number) of every record; the offsets must start at 0 and have no gap."""
    low, high = watermarks(broker, topic)
    assert low == 0
    messages = read_messages(broker, topic, high)
    assert [message.offset() for message in messages] == list(range(high))
    return [NUMBER.unpack_from(message.value() or b"") for message in messages]


def check(found: Found, load: NumberedLoad, *, once: bool) -> None:
    """Assert that every acknowledged record is at its offset.

    With `once`, also assert that records are unique and in order.
    """
    lost = [
        number for number, offset in load.acked.items() if found[offset] != (load.producer, number)
    ]
    assert not lost, (
        f"{len(lost)} acknowledged records are not where they were said to be: {lost[:10]}"
    )
    own = [number for producer, number in found if producer == load.producer]
    assert set(own) <= set(range(load.sent)), "records that nobody sent"
    if once:
        repeated = [number for number, times in Counter(own).items() if times > 1]
        assert not repeated, f"{len(repeated)} records twice: {repeated[:10]}"
        assert own == sorted(own), "records out of order"
        assert not load.failed, f"the idempotent producer gave up: {list(load.failed.items())[:3]}"
        assert len(own) == load.sent


@pytest.mark.parametrize("flush", ["flush before ack", "default flush"])
def test_what_was_acknowledged_is_there(
    start_broker: Callable[..., Broker], topic: str, kills: int, flush: str
) -> None:
    broker = start_broker()
    config: dict[str, Any] = {"flush_messages": 1} if flush == "flush before ack" else {}
    create(broker, topic, **config)
    acks = {"acks": "all", "enable.idempotence": False}
    idempotent = {"enable.idempotence": True}
    with (
        NumberedLoad(broker, topic, 1, acks) as plain,
        NumberedLoad(broker, topic, 2, idempotent) as careful,
        NumberedLoad(broker, topic, 3, {"acks": "1", "enable.idempotence": False}) as quick,
    ):
        kill_under_load(broker, [plain, careful, quick], kills)
    found = read_all(broker, topic)
    check(found, plain, once=False)
    check(found, quick, once=False)
    check(found, careful, once=True)
    acked = sum(len(load.acked) for load in (plain, careful, quick))
    print(f"{flush}: {kills} kills, {acked} acknowledged, {len(found)} in the log")
    broker.kill()
    broker.start()
    assert read_all(broker, topic) == found
    broker.restart()
    assert read_all(broker, topic) == found


def test_killed_while_it_recovers(
    start_broker: Callable[..., Broker], topic: str, kills: int
) -> None:
    broker = start_broker()
    create(broker, topic, segment_bytes=1 << 20)
    with NumberedLoad(broker, topic, 1, {"enable.idempotence": True}) as load:
        load.await_acks(5000)
        broker.kill()
        for turn in range(kills):
            broker.launch()
            time.sleep(0.03 * turn)  # kill before, during or after the recovery
            broker.kill()
        broker.start()
        load.await_acks(20)
    check(read_all(broker, topic), load, once=True)


def test_topics_created_before_the_kill_exist_after_it(
    start_broker: Callable[..., Broker], topic: str, kills: int
) -> None:
    broker = start_broker()
    for turn in range(kills):
        create(broker, f"{topic}-{turn}", 2, retention_ms=1000 + turn)
        broker.kill()
        broker.start()
        with broker.connect() as wire:
            answer = wire.ask("Metadata", 12, {"topics": None})
        assert isinstance(answer, dict)
        names = {found["name"]: found["errorCode"] for found in answer["topics"]}
        assert names == {f"{topic}-{n}": 0 for n in range(turn + 1)}
