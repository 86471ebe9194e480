"""Hand-made replication events, and a generator for the events of a cluster with many faults."""

import json
import random
from collections.abc import Sequence
from typing import Any

START_MS = 1_767_225_600_000
"""2026-01-01 00:00:00 UTC."""


class Events:
    """Events of one partition with three replicas, and of brokers; times are in seconds."""

    def __init__(self, topic: str = "t", partition: int = 0, start_ms: int = START_MS) -> None:
        self.lines: list[str] = []
        self._where = {"topic": topic, "partition": partition}
        self._start_ms = start_ms
        self.replicas: Sequence[int] = (1, 2, 3)
        self.leader, self.epoch, self.isr = 1, 0, [1, 2, 3]

    def _add(self, at: float, event: str, node: int, **fields: Any) -> None:
        ts = self._start_ms + round(at * 1000)
        self.lines.append(json.dumps({"v": 1, "event": event, "ts": ts, "node": node, **fields}))

    def _state(self) -> dict[str, Any]:
        return {
            **self._where,
            "leader": self.leader,
            "leader_epoch": self.epoch,
            "isr": list(self.isr),
            "replicas": list(self.replicas),
            "min_isr": 2,
        }

    def shrink(self, at: float, broker: int, reason: str = "stuck") -> None:
        before, self.isr = self.isr, [one for one in self.isr if one != broker]
        left = [{"broker": broker, "reason": reason, "end_offset": 5, "lag_ms": 30_000}]
        more = {"isr_before": before, "left": left, "partition_epoch": 1}
        self._add(at, "isr_shrink", self.leader, **self._state(), **more)

    def expand(self, at: float, broker: int) -> None:
        before, self.isr = self.isr, [*self.isr, broker]
        more = {"isr_before": before, "joined": [broker], "partition_epoch": 2}
        self._add(at, "isr_expand", self.leader, **self._state(), **more)

    def elect(self, at: float, leader: int, reason: str = "dead", *, clean: bool = True) -> None:
        before, self.leader = self.leader, leader
        self.epoch += 1
        more = {"leader_before": before, "reason": reason, "clean": clean, "elr": []}
        self._add(at, "leader_elected", 3, **self._state(), **more)

    def fence(
        self, at: float, broker: int, reason: str = "session-expired", silent_ms: int | None = None
    ) -> None:
        more = {"broker_epoch": 7, "reason": reason, "silent_ms": silent_ms}
        self._add(at, "broker_fenced", 3, broker=broker, **more)

    def unfence(self, at: float, broker: int) -> None:
        self._add(at, "broker_unfenced", 3, broker=broker, broker_epoch=8, reason="registered")

    def state(self, at: float, lags: dict[int, int] | None = None, end: int = 1000) -> None:
        lags = lags or {}
        followers = [
            {
                "broker": broker,
                "end_offset": end - lags.get(broker, 0),
                "lag": lags.get(broker, 0),
                "lag_ms": lags.get(broker, 0) * 2,
                "in_sync": broker in self.isr,
                "last_fetch_ms": 3,
            }
            for broker in self.replicas
            if broker != self.leader
        ]
        more = {"high_watermark": end, "log_start_offset": 0, "end_offset": end}
        self._add(at, "replica_state", self.leader, **self._state(), **more, followers=followers)


def a_bad_day(
    minutes: int = 120, partitions: int = 8, every: float = 20.0, seed: int = 4
) -> list[str]:
    """The events of three brokers.

    Broker 3 is slow and leaves the ISR four times. Broker 2 dies and returns.
    """
    dice = random.Random(seed)
    logs = [Events("orders" if n < 5 else "payments", n % 5) for n in range(partitions)]
    for number, log in enumerate(logs):
        _one_day(log, number, minutes * 60.0, every, dice)
    broker_wide = Events()
    died, back = minutes * 60.0 * 0.55, minutes * 60.0 * 0.62
    broker_wide.fence(died, 2, "connection-refused")
    broker_wide.unfence(back, 2)
    lines = [line for log in (*logs, broker_wide) for line in log.lines]
    return sorted(lines, key=lambda line: json.loads(line)["ts"])


def _one_day(log: Events, number: int, length: float, every: float, dice: random.Random) -> None:
    log.leader = number % 3 + 1
    changes: list[tuple[float, str, int]] = []
    if number in (0, 3) and log.leader != 3:  # broker 3 is slow for a while
        for turn in range(4):
            at = length * 0.2 + turn * 400 + number * 13
            changes += [(at, "shrink", 3), (at + 150 + 40 * turn, "expand", 3)]
    died, back = length * 0.55, length * 0.62
    changes += [(died, "die", 2), (back + number * 3, "expand", 2)]
    if log.leader == 2:
        changes.append((back + 300, "prefer", 2))
    clock, end = 1.0, 10_000
    log.elect(0.5, log.leader, "created")
    for at, what, broker in sorted(changes):
        while clock < at:
            clock, end = clock + every, end + dice.randrange(500, 3000)
            slow = {3: dice.randrange(200, 4000)} if length * 0.18 < clock < length * 0.42 else {}
            out = {one: 5000 + dice.randrange(9000) for one in log.replicas if one not in log.isr}
            calm = {one: dice.randrange(0, 30) for one in log.replicas}
            log.state(min(clock, at - 0.001), calm | slow | out, end)
        if what == "die" and log.leader == broker:
            log.isr = [one for one in log.isr if one != broker]
            log.elect(at + 0.05 + dice.random() * 0.3, next(iter(log.isr)), "dead")
        elif what in ("shrink", "die"):
            log.shrink(at + 0.02, broker, "dead" if what == "die" else "slow")
        elif what == "expand":
            log.expand(at, broker)
        else:
            log.elect(at, broker, "preferred")
    while clock < length:
        clock, end = clock + every, end + dice.randrange(500, 3000)
        log.state(clock, {one: dice.randrange(0, 30) for one in log.replicas}, end)
