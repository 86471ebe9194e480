"""The simulated network: connections between machines, which may be slow, cut, reset or refused.

A connection behaves like TCP, but its unit is the frame. Frames arrive in order or not at all.
While a link is cut, frames wait, because TCP retransmits them. If a process ends, the frames that
it has sent still arrive, and then its connections close. A machine without power does not answer.
When the power is back, the machine resets its old connections.

TCP hides packet faults. If a segment is lost, the segment and all later bytes wait for its
retransmission. A request can therefore be duplicated or reordered only if its client uses two
connections. The client gives up one connection and repeats the request on the next, while the first
request is still in transit. Each connection has its own delays, so either request may arrive first.
"""

from collections import Counter, deque
from collections.abc import Callable
from typing import Protocol, TypeAlias, TypeVar

from tidelog.model.ids import Millis
from tidelog.sim.machines.world import World

Address: TypeAlias = tuple[str, int]
"""The machine's name and a port."""

_Trouble = TypeVar("_Trouble", str, tuple[str, str])

RETRANSMIT_MS: Millis = 200
"""The time after which Linux first retransmits a lost segment. The time doubles with each retry."""
MAX_RETRANSMIT_MS: Millis = 5_000
CONNECT_TIMEOUT_MS: Millis = 127_000
"""How long Linux tries to connect to an address that does not answer."""


class Party(Protocol):
    """The owner of one side of a connection. The network calls these methods."""

    def connected(self, side: "Side") -> None:
        """The requested connection is established."""

    def connect_failed(self, was_refused: bool, reason: str) -> None: ...

    def received(self, frame: bytes) -> None: ...

    def lost(self) -> None:
        """The other side closed the connection, or the connection was reset."""


Accept: TypeAlias = Callable[["Side", str], Party]
"""A function that accepts a connection from a machine."""


class _Way:
    """One direction of a connection.

    Frames arrive in order after a delay. While the link is cut, they wait.
    """

    __slots__ = ("_is_moving", "_network", "_queue", "source", "target")

    def __init__(self, network: "SimNetwork", source: str, target: str) -> None:
        self.source = source
        self.target = target
        self._network = network
        self._queue: deque[tuple[Millis, Callable[[], None]]] = deque()
        self._is_moving = False

    def put(self, arrive: Callable[[], None]) -> None:
        network = self._network
        due = network.world.now + network.delay(self.source, self.target)
        self._queue.append((due, arrive))
        self.move()

    def move(self) -> None:
        if self._is_moving or not self._queue:
            return
        if self._network.is_blocked(self.source, self.target):
            self._network.stalled[self] = None
            return
        self._is_moving = True
        world = self._network.world
        world.after(max(0, self._queue[0][0] - world.now), self._arrive)

    def clear(self) -> None:
        self._queue.clear()

    def _arrive(self) -> None:
        self._is_moving = False
        is_due = self._queue and self._queue[0][0] <= self._network.world.now
        if is_due and not self._network.is_blocked(self.source, self.target):
            self._queue.popleft()[1]()
        self.move()


class Side:
    """One side of a connection."""

    def __init__(self, network: "SimNetwork", place: str, other_place: str) -> None:
        self.place = place
        self.is_open = True
        self.party: Party | None = None
        self.other: Side
        self._network = network
        self._out = _Way(network, place, other_place)
        self._has_vanished = False

    def send(self, frame: bytes) -> None:
        if self.is_open:
            self._out.put(lambda: self.other.arrived(frame))

    def close(self) -> None:
        """Close this side.

        The other side learns of the close after all sent frames have arrived.
        """
        if self.is_open:
            self._end()
            self._out.put(self.other.told_of_end)

    def vanish(self) -> None:
        """End this side because its machine lost power. The other side does not notice the end."""
        self._end()
        self._has_vanished = True
        self._out.clear()

    def tell(self, arrive: Callable[[], None]) -> None:
        """Call `arrive` at the other side after all sent frames have arrived."""
        self._out.put(arrive)

    def told_of_end(self) -> None:
        if self.is_open:
            self._end()
            if self.party is not None:
                self.party.lost()

    def arrived(self, frame: bytes) -> None:
        if self.is_open:
            assert self.party is not None
            self.party.received(frame)
        elif self._has_vanished:
            self._has_vanished = False
            self._out.put(self.other.told_of_end)

    def _end(self) -> None:
        self.is_open = False
        self._network.forget(self)


class SimNetwork:
    def __init__(self, world: World, delay_ms: Millis = 3) -> None:
        self.world = world
        self.delay_ms = delay_ms
        """The maximum delay of a frame; the minimum is 1 ms."""
        self.stalled: dict[_Way, None] = {}
        self._dice = world.dice.fork("network")
        self._listening: dict[Address, Accept] = {}
        self._sides: dict[Side, None] = {}
        self._without_power: set[str] = set()
        self._cuts: Counter[tuple[str, str]] = Counter()
        self._isolated: Counter[str] = Counter()
        self._slow: Counter[str] = Counter()
        self._lossy: Counter[str] = Counter()

    # -- actions of machines -----------------------------------------------------------------------

    def listen(self, address: Address, accept: Accept) -> None:
        assert address not in self._listening, f"{address} is in use"
        self._listening[address] = accept

    def stop_listening(self, machine: str) -> None:
        for address in [address for address in self._listening if address[0] == machine]:
            del self._listening[address]

    def connect(self, source: str, to: Address, party: Party) -> Side:
        """Start to connect. `close` on the returned side cancels the attempt."""
        near, far = Side(self, source, to[0]), Side(self, to[0], source)
        near.other, far.other = far, near
        near.party = party
        self._sides[near] = self._sides[far] = None
        is_settled = False

        def asked() -> None:
            far.tell(answered if to in self._listening else refused)

        def refused() -> None:
            fail(True, "Connection refused")

        def answered() -> None:
            nonlocal is_settled
            if near.is_open and not is_settled:
                is_settled = True
                near.tell(accepted)
                party.connected(near)

        def accepted() -> None:
            accept = self._listening.get(to)
            if accept is None:
                far.close()
            elif far.is_open:
                far.party = accept(far, source)

        def fail(was_refused: bool, reason: str) -> None:
            nonlocal is_settled
            if near.is_open and not is_settled:
                is_settled = True
                near.vanish()
                self.forget(far)
                party.connect_failed(was_refused, reason)

        near.tell(asked)
        self.world.after(CONNECT_TIMEOUT_MS, lambda: fail(False, "Connection timed out"))
        return near

    # -- faults of machines and links --------------------------------------------------------------

    def cut(self, source: str, target: str) -> None:
        """Block frames from `source` to `target`, but not in the other direction."""
        self._cuts[source, target] += 1

    def mend(self, source: str, target: str) -> None:
        """Undo one cut of this direction. Once no cut is left, waiting frames continue."""
        _take(self._cuts, (source, target))
        self._move_on()

    def partition(self, one: str, other: str) -> None:
        self.cut(one, other)
        self.cut(other, one)

    def isolate(self, machine: str) -> None:
        """Cut the machine off from all others."""
        self._isolated[machine] += 1

    def rejoin(self, machine: str) -> None:
        _take(self._isolated, machine)
        self._move_on()

    def slow_down(self, machine: str, added_ms: Millis) -> None:
        """Add up to this delay to all frames of the machine; a call with -added_ms undoes this."""
        self._slow[machine] += added_ms

    def lose_segments(self, machine: str, per_mille: int) -> None:
        """Lose this many segments per thousand of the machine's traffic."""
        self._lossy[machine] += per_mille

    def heal(self) -> None:
        """Repair all links; waiting frames continue."""
        for troubles in (self._cuts, self._isolated, self._slow, self._lossy):
            troubles.clear()
        self._move_on()

    def reset(self, one: str, other: str) -> None:
        """Reset the connections between two machines. Both sides notice, and data is lost."""
        for side in list(self._sides):
            if side.place == one and side.other.place == other:
                self.world.after(self.delay(one, other), side.told_of_end)
                self.world.after(self.delay(other, one), side.other.told_of_end)

    def lose_power(self, machine: str) -> None:
        self._without_power.add(machine)
        self.stop_listening(machine)
        for side in list(self._sides):
            if side.place == machine:
                side.vanish()

    def regain_power(self, machine: str) -> None:
        self._without_power.discard(machine)
        self._move_on()

    @property
    def machines(self) -> list[str]:
        """The machines that have a connection."""
        return sorted({side.place for side in self._sides})

    # -- called by connections ---------------------------------------------------------------------

    def delay(self, source: str, target: str) -> Millis:
        delay = 1 + self._dice.below(self.delay_ms)
        if self._slow:
            delay += self._dice.below(1 + max(0, self._slow[source]) + max(0, self._slow[target]))
        if self._lossy:
            per_mille = max(0, self._lossy[source]) + max(0, self._lossy[target])
            wait = RETRANSMIT_MS
            while wait < MAX_RETRANSMIT_MS and self._dice.below(1_000) < per_mille:
                delay += wait
                wait *= 2
        return delay

    def is_blocked(self, source: str, target: str) -> bool:
        if target in self._without_power:
            return True
        if source == target:
            return False
        return (
            (source, target) in self._cuts or source in self._isolated or target in self._isolated
        )

    def forget(self, side: Side) -> None:
        self._sides.pop(side, None)

    def _move_on(self) -> None:
        stalled, self.stalled = self.stalled, {}
        for way in stalled:
            way.move()


def _take(troubles: Counter[_Trouble], trouble: _Trouble) -> None:
    """Decrement the counter, unless `heal` has already set the counter to 0."""
    if troubles[trouble] > 1:
        troubles[trouble] -= 1
    else:
        del troubles[trouble]
