"""A connection to a simulated node. `ask` runs the simulation until the response arrives."""

from collections.abc import Callable
from itertools import count
from typing import Any

from tidelog.model.ids import Millis, NodeId
from tidelog.sim.clients.messages import answer_in, frame_of
from tidelog.sim.machines.cluster import SimCluster

LIMIT_MS = 60_000


class Asked:
    """A pending request, and its response once it has arrived."""

    def __init__(self) -> None:
        self.is_done = False
        self.answer: Any = None
        """The response; None until the response arrives, or if the connection was lost."""


class Talk:
    """One connection to one node."""

    def __init__(
        self, cluster: SimCluster, node: NodeId, listener: str = "PLAINTEXT", **options: Any
    ) -> None:
        self._cluster = cluster
        self._client = cluster.client(node, listener, **options)
        self._correlation_ids = count(1)

    @property
    def is_lost(self) -> bool:
        return self._client.is_lost

    def close(self) -> None:
        self._client.close()

    def begin(
        self, message: Any, version: int | None = None, then: Callable[[Any], None] | None = None
    ) -> Asked:
        asked = Asked()

        def answered(frame: bytes | None) -> None:
            asked.is_done = True
            if frame is not None:
                asked.answer = answer_in(frame, message, version)
            if then is not None:
                then(asked.answer)

        self._client.request(frame_of(message, next(self._correlation_ids), version), answered)
        return asked

    def tell(self, message: Any) -> None:
        """Send a request that has no response (acks=0)."""
        self._client.send(frame_of(message, next(self._correlation_ids))[4:])

    def ask(self, message: Any, version: int | None = None, limit_ms: Millis = LIMIT_MS) -> Any:
        """The response, or None if the connection was lost before the response arrived."""
        asked = self.begin(message, version)
        assert self._cluster.world.run_until(lambda: asked.is_done, limit_ms), "no answer in time"
        return asked.answer


def running(seed: int = 1, nodes: int = 3, **overrides: str) -> SimCluster:
    """Start a cluster and wait until it is ready. Underscores in config names stand for dots."""
    changed = {key.replace("_", "."): value for key, value in overrides.items()}
    cluster = SimCluster(seed, nodes, changed)
    cluster.start()
    await_ready(cluster)
    return cluster


def await_ready(cluster: SimCluster, limit_ms: Millis = LIMIT_MS) -> None:
    assert cluster.world.run_until(lambda: cluster.is_ready, limit_ms), "not ready in time"


def await_true(
    cluster: SimCluster, condition: Callable[[], bool], limit_ms: Millis = LIMIT_MS
) -> None:
    assert cluster.world.run_until(condition, limit_ms), "did not come true in time"
