"""Measure how soon a large group with the consumer protocol is stable after many members leave.

Run with `python bench/group_departures.py`: 1,000 members over 300 partitions, of which 100 leave
at once, on Tidelog and then on Apache Kafka. A quick try is
`--members 60 --partitions 30 --leave 10`.

Each member has its own connection and implements the protocol itself (KIP-848): it sends heartbeats
at the interval that the coordinator sets, and one more when it has given up or taken partitions.
The heartbeats of the members are spread over the interval. The group is stable when all members
that stay have the same new epoch, every partition has exactly one owner, and the coordinator
describes the group as stable. The CPU time is that of all three brokers, until then and in the
first `--window` seconds.
"""

import asyncio
import struct
import sys
import time
from argparse import ArgumentParser, Namespace
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path
from tempfile import mkdtemp
from typing import Any, NamedTuple
from uuid import UUID

from kio.schema.consumer_group_describe.v1.request import ConsumerGroupDescribeRequest
from kio.schema.consumer_group_heartbeat.v1.request import (
    ConsumerGroupHeartbeatRequest,
    TopicPartitions,
)
from kio.schema.find_coordinator.v4.request import FindCoordinatorRequest

from tidelog.bench.kafka_cluster import KafkaCluster, find_jars
from tidelog.bench.measured_cluster import MeasuredCluster, TidelogCluster
from tidelog.bench.measures import create_topic
from tidelog.bench.usage import check_system, cpu_seconds
from tidelog.client.client import Client
from tidelog.model.errors import ErrorCode
from tidelog.protocol.messages.messages import decode_response, encode_request

GROUP, TOPIC = "departures", "departures"
REBALANCE = timedelta(seconds=60)
UNCHANGED = timedelta(milliseconds=-1)
LEAVING_EPOCH = -1
RETRY_SECONDS = 0.25
JOINS_AT_ONCE = 50
LIMIT_SECONDS = 240.0

NOT_YET = (
    ErrorCode.coordinator_load_in_progress,
    ErrorCode.coordinator_not_available,
    ErrorCode.not_coordinator,
)
"""The answers of a coordinator that has been named, and does not serve the group yet."""

Owned = frozenset[tuple[UUID, int]]


class Unexpected(Exception):
    """The group does not behave as the benchmark needs it."""


class Channel:
    """One connection, on which requests are answered one after the other."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader, self._writer = reader, writer
        self._number = 0

    async def ask(self, message: Any) -> Any:
        self._number += 1
        self._writer.write(encode_request(message, message.__version__, self._number, "bench"))
        (length,) = struct.unpack(">i", await self._reader.readexactly(4))
        frame = memoryview(await self._reader.readexactly(length))
        return decode_response(message.__api_key__, message.__version__, frame)

    def close(self) -> None:
        self._writer.close()


async def connected(address: str) -> Channel:
    host, _, port = address.rpartition(":")
    return Channel(*await asyncio.open_connection(host, int(port)))


async def coordinator(bootstrap: str) -> str:
    """The address of the group's coordinator."""
    deadline = time.monotonic() + LIMIT_SECONDS
    while time.monotonic() < deadline:
        channel = await connected(bootstrap.split(",")[0])
        answer = await channel.ask(FindCoordinatorRequest(key_type=0, coordinator_keys=(GROUP,)))
        channel.close()
        [found] = answer.coordinators
        if found.error_code is ErrorCode.none:
            return f"{found.host}:{found.port}"
        await asyncio.sleep(RETRY_SECONDS)
    raise Unexpected("the group has no coordinator")


class Member:
    def __init__(self, number: int, phase: float) -> None:
        self.member_id = f"member-{number:05}"
        self._phase = phase
        """The part of an interval that the first pause lasts; it spreads the heartbeats."""
        self.epoch = 0
        self.owned: Owned = frozenset()
        self.heartbeats = 0
        self._wakes = asyncio.Event()
        self._is_leaving = False

    async def run(self, address: str) -> None:
        channel = await connected(address)
        report = False
        while not self._is_leaving:
            answer = await channel.ask(self._heartbeat(report))
            self.heartbeats += 1
            if answer.error_code is not ErrorCode.none:
                if self.epoch or answer.error_code not in NOT_YET:
                    raise Unexpected(f"a member got {answer.error_code.name}")
                await asyncio.sleep(RETRY_SECONDS)
                continue
            self.epoch = answer.member_epoch
            report = answer.assignment is not None
            if answer.assignment is not None:
                self.owned = frozenset(
                    (one.topic_id, index)
                    for one in answer.assignment.topic_partitions
                    for index in one.partitions
                )
                continue  # the change has been carried out, and is reported at once
            await self._rest(answer.heartbeat_interval.total_seconds())
        await channel.ask(self._request(LEAVING_EPOCH))
        channel.close()

    def leave(self) -> None:
        self._is_leaving = True
        self._wakes.set()

    async def _rest(self, seconds: float) -> None:
        phase, self._phase = self._phase, 1.0
        try:
            await asyncio.wait_for(self._wakes.wait(), phase * seconds)
        except TimeoutError:
            return

    def _heartbeat(self, report: bool) -> ConsumerGroupHeartbeatRequest:
        if self.epoch == 0:
            return self._request(0, REBALANCE, (TOPIC,), ())
        if not report:
            return self._request(self.epoch)
        by_topic: dict[UUID, list[int]] = {}
        for topic_id, index in sorted(self.owned):
            by_topic.setdefault(topic_id, []).append(index)
        owned = tuple(
            TopicPartitions(topic_id=topic_id, partitions=tuple(indexes))
            for topic_id, indexes in by_topic.items()
        )
        return self._request(self.epoch, owned=owned)

    def _request(
        self,
        epoch: int,
        rebalance: timedelta = UNCHANGED,
        topics: tuple[str, ...] | None = None,
        owned: tuple[TopicPartitions, ...] | None = None,
    ) -> ConsumerGroupHeartbeatRequest:
        return ConsumerGroupHeartbeatRequest(
            group_id=GROUP,
            member_id=self.member_id,
            member_epoch=epoch,
            rebalance_timeout=rebalance,
            subscribed_topic_names=topics,
            topic_partitions=owned,
        )


class Departure(NamedTuple):
    system: str
    join_seconds: float
    stable_seconds: float
    cpu_until_stable: float
    cpu_in_window: float
    steady_cpu_percent: float


async def measure(cluster: MeasuredCluster, options: Namespace) -> Departure:
    address = await coordinator(cluster.bootstrap)
    count = options.members
    members = [Member(number, number / count) for number in range(count)]
    tasks: list[asyncio.Task[None]] = []
    began = time.monotonic()
    for number, member in enumerate(members, 1):
        tasks.append(asyncio.create_task(member.run(address)))
        if number % JOINS_AT_ONCE == 0:
            await until(tasks, lambda: all(one.epoch for one in members[: len(tasks)]))
    at = await stable_at(address, tasks, lambda: is_stable(members, options.partitions, 0))
    joined = at - began

    before, at = cpu_seconds(cluster.pids), time.monotonic()
    await asyncio.sleep(options.window)
    steady = (cpu_seconds(cluster.pids) - before) / (time.monotonic() - at)

    step = max(1, options.members // options.leave)
    leaving = members[::step][: options.leave]
    staying = [one for one in members if one not in leaving]
    departures = tasks[::step][: options.leave]
    epoch = members[0].epoch
    before, at = cpu_seconds(cluster.pids), time.monotonic()
    for member in leaving:
        member.leave()
    used: list[float] = []

    def is_over() -> bool:
        holds = all(one.done() for one in departures)
        holds = holds and is_stable(staying, options.partitions, epoch)
        if holds:
            used.append(cpu_seconds(cluster.pids) - before)
        return holds

    stable = await stable_at(address, tasks, is_over) - at
    cpu = used[-1]
    await asyncio.sleep(max(0.0, options.window - stable))
    in_window = cpu_seconds(cluster.pids) - before
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    return Departure(cluster.name, joined, stable, cpu, in_window, 100 * steady)


def is_stable(members: list[Member], partitions: int, after: int) -> bool:
    """Whether all members have the same epoch, a later one than `after`, and own all partitions."""
    epochs = {member.epoch for member in members}
    if len(epochs) != 1 or min(epochs) <= after:
        return False
    owned = [one for member in members for one in member.owned]
    return len(owned) == len(set(owned)) == partitions


async def stable_at(
    address: str, tasks: list[asyncio.Task[None]], holds: Callable[[], bool]
) -> float:
    """The time at which the condition held, when the coordinator calls the group stable, too."""
    channel = await connected(address)
    request = ConsumerGroupDescribeRequest(group_ids=(GROUP,), include_authorized_operations=False)
    try:
        while True:
            await until(tasks, holds)
            at = time.monotonic()
            answer = await channel.ask(request)
            if answer.groups[0].group_state == "Stable":
                return at
            await asyncio.sleep(RETRY_SECONDS)
    finally:
        channel.close()


async def until(tasks: list[asyncio.Task[None]], holds: Callable[[], bool]) -> None:
    deadline = time.monotonic() + LIMIT_SECONDS
    while not holds():
        for task in tasks:
            if task.done() and (error := task.exception()) is not None:
                raise error
        if time.monotonic() > deadline:
            raise Unexpected("the group is not stable in time")
        await asyncio.sleep(0.02)


@contextmanager
def running(cluster: MeasuredCluster, partitions: int) -> Iterator[MeasuredCluster]:
    with cluster:
        for node in cluster.node_ids:
            cluster.start(node)
        cluster.await_brokers()
        with Client(cluster.bootstrap) as client:
            create_topic(cluster, client, TOPIC, partitions)
        yield cluster


def clusters(options: Namespace) -> Iterator[MeasuredCluster]:
    directory = Path(mkdtemp(prefix="group-departures-"))
    if "tidelog" in options.systems:
        yield TidelogCluster(directory / "tidelog")
    if "kafka" in options.systems:
        yield KafkaCluster(directory / "kafka", find_jars(options.kafka_libs))


def main() -> None:
    parser = ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--members", type=int, default=1_000)
    parser.add_argument("--partitions", type=int, default=300)
    parser.add_argument("--leave", type=int, default=100, help="how many members leave at once")
    parser.add_argument("--window", type=float, default=30.0, help="seconds of the CPU figures")
    parser.add_argument("--systems", nargs="+", default=["tidelog", "kafka"])
    parser.add_argument("--kafka-libs", type=Path, help="the directory of Apache Kafka's jars")
    options = parser.parse_args()
    check_system()
    print(
        f"{options.members} members, {options.partitions} partitions, {options.leave} leave at "
        f"once; the window is {options.window:.0f} s"
    )
    row = "{:>9} {:>12} {:>14} {:>18} {:>16} {:>14}".format
    print(row("", "all joined", "stable again", "CPU until stable", "CPU in window", "CPU at rest"))
    for cluster in clusters(options):
        with running(cluster, options.partitions):
            result = asyncio.run(measure(cluster, options))
        print(
            row(
                result.system,
                f"{result.join_seconds:.1f} s",
                f"{result.stable_seconds:.2f} s",
                f"{result.cpu_until_stable:.2f} s",
                f"{result.cpu_in_window:.2f} s",
                f"{result.steady_cpu_percent:.1f} %",
            )
        )
        sys.stdout.flush()


if __name__ == "__main__":
    main()
