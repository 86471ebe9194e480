"""Counts the function calls that common work costs a node, in a simulated cluster.

The counts are the same on every machine. So they show a small loss of speed that measured times
would not show. Only functions of Tidelog count. Comprehensions do not count, because newer versions
of Python do not call them as functions.
"""

import gc
from collections import Counter
from collections.abc import Callable, Iterable
from cProfile import Profile
from enum import Enum
from functools import partial
from pathlib import Path
from types import CodeType
from typing import NamedTuple

import tidelog
from tidelog.model.errors import ErrorCode
from tidelog.model.events import Connected, Event, FrameReceived
from tidelog.model.ids import ConnId, Millis
from tidelog.model.outbound import Outbound
from tidelog.node.node import Node
from tidelog.sim.clients.messages import batch, create_topic, fetch_from, produce_to
from tidelog.sim.clients.talk import Talk, await_ready
from tidelog.sim.machines.cluster import SimCluster

SEED = 1
REQUESTS = 200
WARM_UP = 20
TOPIC = "measured"
CONTROLLER = "CONTROLLER"

_ROOT = str(Path(tidelog.__file__).parent)
_UNCOUNTED = {"<listcomp>", "<setcomp>", "<dictcomp>", "<genexpr>"}


class Kind(Enum):
    """The kind of an event that a node handles."""

    PRODUCE = "a Produce of a client"
    READ = "a Fetch of a client"
    REPLICATE = "a Fetch of another node, on the listener of brokers"
    ANSWER = "the answer of another node"
    OTHER = "anything else"


class Cost(NamedTuple):
    """The function calls of one piece of work, on average."""

    work: str
    calls: float
    functions: dict[str, float]
    """The calls of each function, by its file and name."""


def costs() -> list[Cost]:
    """Measure a cluster of three brokers, with one partition that has three replicas."""
    gc.collect()
    gc.disable()  # because the collector closes generators, which counts as a call
    try:
        return _measured()
    finally:
        gc.enable()


def _measured() -> list[Cost]:
    cluster = SimCluster(SEED, 3)
    meters = {host.id: CallMeter(cluster) for host in cluster.hosts.values()}
    for id, meter in meters.items():
        cluster.hosts[id].handle = meter.handle
    cluster.start()
    await_ready(cluster)
    [controller] = [host.id for host in cluster.controllers]
    leader, follower = (id for id in meters if id != controller)
    Talk(cluster, controller).ask(create_topic(TOPIC, on=[[leader, follower, controller]]))
    at_leader, at_follower, at_controller = meters[leader], meters[follower], meters[controller]

    client = Talk(cluster, leader)
    _after_warm_up(meters.values(), partial(_produce, client))
    found = [
        at_leader.average("a produce with acks=all, on the leader", Kind.PRODUCE),
        at_leader.average("a fetch of a follower, on the leader", Kind.REPLICATE),
        at_follower.average("an answer of the leader, on a follower", Kind.ANSWER),
        at_leader.total("all work for a produce, on the leader", REQUESTS),
        at_follower.total("all work for a produce, on a follower", REQUESTS),
    ]
    _after_warm_up(meters.values(), partial(_consume, client))
    found.append(at_leader.average("a fetch of a consumer, on the leader", Kind.READ))
    _after_warm_up(meters.values(), lambda seconds: cluster.world.run(seconds * 1_000))
    found.append(at_follower.total("an idle second, on a broker", REQUESTS))
    found.append(at_controller.total("an idle second, on the active controller", REQUESTS))
    return found


def _after_warm_up(meters: "Iterable[CallMeter]", work: Callable[[int], None]) -> None:
    """Do the work `WARM_UP` times without counting calls, then `REQUESTS` times with counting."""
    work(WARM_UP)
    for meter in meters:
        meter.forget()
    work(REQUESTS)


def _produce(client: Talk, times: int) -> None:
    for number in range(times):
        answer = client.ask(produce_to(TOPIC, batch(b"%050d" % number)))
        [(_, [partition])] = answer.topics
        assert partition.error is ErrorCode.none


def _consume(client: Talk, times: int) -> None:
    for offset in range(times):
        answer = client.ask(fetch_from(TOPIC, offset))
        [(_, [partition])] = answer.topics
        assert partition.error is ErrorCode.none


class CallMeter:
    """Counts the function calls of one node for each kind of event."""

    def __init__(self, cluster: SimCluster) -> None:
        self._hosts = {host.name for host in cluster.hosts.values()}
        self._fetches: dict[ConnId, Kind] = {}
        """For each accepted connection, the kind of a Fetch that arrives on it."""
        self.forget()

    def forget(self) -> None:
        self._profiles = {kind: Profile() for kind in Kind}
        self._events: Counter[Kind] = Counter()

    def handle(self, node: Node, event: Event, now: Millis) -> list[Outbound]:
        """Let the node handle the event, and count its calls."""
        kind = self._kind(event)
        self._events[kind] += 1
        profile = self._profiles[kind]
        profile.enable()
        try:
            return node.handle(event, now)
        finally:
            profile.disable()

    def average(self, work: str, kind: Kind) -> Cost:
        """The cost of one event of this kind."""
        return _cost(work, [self._profiles[kind]], self._events[kind])

    def total(self, work: str, times: int) -> Cost:
        """The cost of all events, divided by the number of times that the work was done."""
        return _cost(work, self._profiles.values(), times)

    def _kind(self, event: Event) -> Kind:
        if isinstance(event, Connected):
            is_of_node = event.peer.rpartition(":")[0] in self._hosts
            is_for_brokers = event.listener != CONTROLLER
            of_node = Kind.REPLICATE if is_for_brokers else Kind.OTHER
            self._fetches[event.conn] = of_node if is_of_node else Kind.READ
        if not isinstance(event, FrameReceived):
            return Kind.OTHER
        if event.conn not in self._fetches:
            return Kind.ANSWER
        match int.from_bytes(event.frame[:2]):
            case 0:
                return Kind.PRODUCE
            case 1:
                return self._fetches[event.conn]
            case _:
                return Kind.OTHER


def _cost(work: str, profiles: Iterable[Profile], times: int) -> Cost:
    calls: Counter[str] = Counter()
    for profile in profiles:
        for entry in profile.getstats():
            if (name := _name(entry.code)) is not None:
                calls[name] += entry.callcount
    functions = {name: round(count / times, 2) for name, count in sorted(calls.items())}
    return Cost(work, round(calls.total() / times, 1), functions)


def _name(code: CodeType | str) -> str | None:
    """The file and the name of a function of Tidelog; None for other functions."""
    if isinstance(code, str) or not code.co_filename.startswith(_ROOT):
        return None
    if code.co_name in _UNCOUNTED:
        return None
    file = code.co_filename.removeprefix(_ROOT).lstrip("/")
    return f"{file}:{code.co_qualname}"
