"""The simulated network behaves as TCP does between machines that fail."""

import pytest

from tidelog.sim.machines.network import CONNECT_TIMEOUT_MS, Party, Side, SimNetwork
from tidelog.sim.machines.world import World

HERE, THERE = "here", "there"
ADDRESS = (THERE, 9092)


class End:
    """One side of a connection, which records its events."""

    def __init__(self) -> None:
        self.seen: list[object] = []
        self.side: Side | None = None

    def connected(self, side: Side) -> None:
        self.side = side
        self.seen.append("connected")

    def connect_failed(self, was_refused: bool, reason: str) -> None:
        self.seen.append(("refused" if was_refused else "failed", reason))

    def received(self, frame: bytes) -> None:
        self.seen.append(frame)

    def lost(self) -> None:
        self.seen.append("lost")


class Wire:
    """A listening machine, and a connection to it."""

    def __init__(self, seed: int = 1) -> None:
        self.world = World(seed)
        self.network = SimNetwork(self.world)
        self.accepted: list[End] = []
        self.listen()

    def listen(self) -> None:
        self.network.listen(ADDRESS, self._accept)

    def _accept(self, side: Side, source: str) -> Party:
        assert source == HERE
        end = End()
        end.side = side
        self.accepted.append(end)
        return end

    def connect(self) -> End:
        end = End()
        self.network.connect(HERE, ADDRESS, end)
        return end

    def established(self) -> tuple[End, End]:
        near = self.connect()
        self.world.run(20)
        return near, self.accepted[-1]


def numbered(count: int) -> list[bytes]:
    return [b"%d" % number for number in range(count)]


def test_both_ends_hear_of_a_connection() -> None:
    wire = Wire()
    near, far = wire.established()
    assert near.seen == ["connected"]
    assert far.seen == []


def test_frames_take_time_and_arrive_in_order(seed: int) -> None:
    wire = Wire(seed)
    near, far = wire.established()
    for frame in numbered(50):
        near.side.send(frame)
        far.side.send(frame)
    assert far.seen == []
    wire.world.run(wire.network.delay_ms)
    assert far.seen == numbered(50)
    assert near.seen[1:] == numbered(50)


def test_a_port_where_nobody_listens_refuses() -> None:
    wire = Wire()
    wire.network.stop_listening(THERE)
    near = wire.connect()
    wire.world.run(20)
    assert near.seen == [("refused", "Connection refused")]


def test_a_machine_without_power_does_not_even_refuse() -> None:
    wire = Wire()
    wire.network.lose_power(THERE)
    near = wire.connect()
    wire.world.run(CONNECT_TIMEOUT_MS - 1)
    assert near.seen == []
    wire.world.run(1)
    assert near.seen == [("failed", "Connection timed out")]


def test_a_connection_asked_for_while_the_machine_was_away_is_made_when_it_is_back() -> None:
    wire = Wire()
    wire.network.lose_power(THERE)
    near = wire.connect()
    wire.world.run(1_000)
    wire.network.regain_power(THERE)
    wire.listen()
    wire.world.run(20)
    assert near.seen == ["connected"]


def test_the_end_of_a_process_is_told_after_all_that_it_sent() -> None:
    wire = Wire()
    near, far = wire.established()
    for frame in numbered(5):
        far.side.send(frame)
    far.side.close()
    wire.world.run(20)
    assert near.seen == ["connected", *numbered(5), "lost"]
    near.side.send(b"too late")
    wire.world.run(20)
    assert far.seen == []


def test_who_closes_is_not_told_of_it() -> None:
    wire = Wire()
    near, far = wire.established()
    near.side.close()
    near.side.close()
    wire.world.run(20)
    assert near.seen == ["connected"]
    assert far.seen == ["lost"]


def test_what_is_sent_into_a_cut_arrives_in_order_when_it_heals(seed: int) -> None:
    wire = Wire(seed)
    near, far = wire.established()
    near.side.send(b"first")
    wire.world.run(1)
    wire.network.partition(HERE, THERE)
    for frame in numbered(10):
        near.side.send(frame)
        wire.world.run(1)
    wire.network.heal()
    wire.network.partition(HERE, THERE)
    wire.world.run(10_000)
    wire.network.heal()
    near.side.send(b"last")
    wire.world.run(20)
    assert far.seen == [b"first", *numbered(10), b"last"]


def test_a_cut_in_one_direction_leaves_the_other_alone() -> None:
    wire = Wire()
    near, far = wire.established()
    wire.network.cut(HERE, THERE)
    near.side.send(b"unheard")
    far.side.send(b"heard")
    wire.world.run(1_000)
    assert near.seen == ["connected", b"heard"]
    assert far.seen == []


@pytest.mark.parametrize("cut", [(HERE, THERE), (THERE, HERE)])
def test_no_connection_is_made_across_a_cut_in_either_direction(cut: tuple[str, str]) -> None:
    wire = Wire()
    wire.network.cut(*cut)
    near = wire.connect()
    wire.world.run(1_000)
    assert near.seen == []
    assert wire.accepted == []
    wire.network.heal()
    wire.world.run(20)
    assert near.seen == ["connected"]
    assert len(wire.accepted) == 1


def test_an_isolated_machine_reaches_nobody_but_itself() -> None:
    wire = Wire()
    wire.network.isolate(THERE)
    assert wire.network.is_blocked(HERE, THERE)
    assert wire.network.is_blocked(THERE, HERE)
    assert not wire.network.is_blocked(THERE, THERE)
    assert not wire.network.is_blocked(HERE, "elsewhere")


def test_a_reset_is_told_to_both_and_loses_what_is_on_its_way() -> None:
    wire = Wire()
    near, far = wire.established()
    wire.network.delay_ms = 1_000
    for frame in numbered(20):
        near.side.send(frame)
    wire.network.delay_ms = 1
    wire.network.reset(HERE, THERE)
    wire.world.run(2_000)
    assert near.seen == ["connected", "lost"]
    assert far.seen[-1] == "lost"
    assert len(far.seen) < 20


def test_power_loss_is_told_to_nobody_until_they_write_to_the_machine_that_is_back() -> None:
    wire = Wire()
    near, far = wire.established()
    far.side.send(b"never arrives")
    wire.network.lose_power(THERE)
    wire.world.run(60_000)
    assert near.seen == ["connected"]
    near.side.send(b"hello?")
    wire.world.run(60_000)
    assert near.seen == ["connected"]

    wire.network.regain_power(THERE)
    wire.world.run(20)

    assert near.seen == ["connected", "lost"]
    assert far.seen == []


def test_hanging_up_while_it_still_connects_is_heard_by_nobody() -> None:
    wire = Wire()
    end = End()
    side = wire.network.connect(HERE, ADDRESS, end)
    side.close()
    wire.world.run(CONNECT_TIMEOUT_MS)
    assert end.seen == []
    assert wire.accepted == []


def test_a_way_that_was_cut_twice_is_open_when_both_cuts_are_mended() -> None:
    wire = Wire()
    near, far = wire.established()
    wire.network.cut(HERE, THERE)
    wire.network.cut(HERE, THERE)
    near.side.send(b"frame")

    wire.network.mend(HERE, THERE)
    wire.world.run(1_000)
    assert far.seen == []
    wire.network.mend(HERE, THERE)
    wire.world.run(20)
    assert far.seen == [b"frame"]
    wire.network.mend(HERE, THERE)  # the link is already mended


def test_an_isolated_machine_rejoins() -> None:
    wire = Wire()
    near, far = wire.established()
    wire.network.isolate(THERE)
    near.side.send(b"frame")
    wire.world.run(1_000)
    assert far.seen == []

    wire.network.rejoin(THERE)
    wire.world.run(20)

    assert far.seen == [b"frame"]


def test_a_lost_segment_holds_up_all_behind_it_and_none_is_missing(seed: int) -> None:
    wire = Wire(seed)
    near, far = wire.established()
    wire.network.lose_segments(HERE, 300)
    frames = [b"%d" % number for number in range(30)]
    for frame in frames:
        near.side.send(frame)

    wire.world.run(150)
    assert far.seen != frames, "nothing was lost in thirty"
    wire.world.run(60_000)

    assert far.seen == frames


def test_a_slow_link_is_as_fast_as_before_when_that_is_over() -> None:
    wire = Wire()
    near, far = wire.established()
    wire.network.slow_down(HERE, 5_000)
    near.side.send(b"slow")
    wire.world.run(10)
    assert far.seen == []
    wire.world.run(6_000)
    wire.network.slow_down(HERE, -5_000)
    near.side.send(b"quick")
    wire.world.run(10)

    assert far.seen == [b"slow", b"quick"]
