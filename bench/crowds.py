"""Crowds of clients that each send a few large or many small requests at once, for `freeze.py`.

A crowd runs in a process of its own, so that it does not delay the bystander's measurements.
"""

from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from datetime import timedelta
from multiprocessing import get_context
from typing import NamedTuple

from kio.schema.describe_configs.v4.request import DescribeConfigsRequest, DescribeConfigsResource
from kio.schema.join_group.v9.request import JoinGroupRequest, JoinGroupRequestProtocol
from tests.cluster.hostile import PARTITIONS, TOPICS, Client, client
from tests.sim.messages import frame_of

from tidelog.protocol.fetch.request import FetchPartition, FetchRequest
from tidelog.testing import Cluster

WAIT_MS = 100


class Crowd(NamedTuple):
    name: str
    connections: int
    frames: Callable[[int], Sequence[bytes]]
    """Returns the frames that the client with this number sends, one after the other."""


def send(cluster: Cluster, crowd: Crowd) -> list[str]:
    """Let all clients send to node 1 at once; returns "answered" or "closed" for each request."""
    with ProcessPoolExecutor(1, get_context("spawn")) as process:
        return process.submit(_send, cluster.port(1), CROWDS.index(crowd)).result()


def _send(port: int, index: int) -> list[str]:
    crowd = CROWDS[index]
    with ThreadPoolExecutor(crowd.connections) as pool:
        outcomes = pool.map(
            lambda number: _outcomes(port, crowd.frames(number)), range(crowd.connections)
        )
        return [outcome for ended in outcomes for outcome in ended]


def _outcomes(port: int, frames: Sequence[bytes]) -> list[str]:
    with client(port) as one:
        sent = sum(one.send_frame(frame) for frame in frames)
        return [_outcome(one) for _ in range(sent)] + ["closed"] * (len(frames) - sent)


def _outcome(one: Client) -> str:
    return "answered" if one.receive() else "closed"


def _join(size: int) -> Callable[[int], Sequence[bytes]]:
    def frames(number: int) -> Sequence[bytes]:
        request = JoinGroupRequest(
            group_id=f"group-{number}",
            session_timeout=timedelta(seconds=10),
            rebalance_timeout=timedelta(seconds=1),
            member_id="",
            protocol_type="consumer",
            protocols=(JoinGroupRequestProtocol(name="range", metadata=bytes(size)),),
        )
        return [frame_of(request)]

    return frames


def _fetches(number: int) -> Sequence[bytes]:
    asked = [FetchPartition(index, -1, 0, -1, -1, 1 << 20) for index in range(PARTITIONS)]
    topics = [(f"t{topic}", asked) for topic in range(TOPICS)]
    return [frame_of(FetchRequest(WAIT_MS, 1, 1 << 20, topics=topics, session_epoch=-1))] * 64


def _describe(number: int) -> Sequence[bytes]:
    resource = DescribeConfigsResource(resource_type=2, resource_name="t0", configuration_keys=None)
    request = DescribeConfigsRequest(
        resources=(resource,) * 1_000, include_synonyms=True, include_documentation=True
    )
    return [frame_of(request)]


CROWDS = (
    Crowd("60 JoinGroups of 7.9 MB", 60, _join(7_900_000)),
    Crowd("400 JoinGroups of 900 KB", 400, _join(900_000)),
    Crowd("800 connections, 64 fetches", 800, _fetches),
    Crowd("60 DescribeConfigs", 60, _describe),
)
