"""Finds intervals in a stream of events, with the open interval of each partition as Spark state.

A window is not suitable, because an interval may last for weeks. When the change that ends an
interval arrives, the interval is emitted. The open interval stays in the state.
"""

from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

import pandas as pd
from pyspark.sql import DataFrame
from pyspark.sql.streaming.state import GroupState, GroupStateTimeout

from tidelog_pipelines.transformations.events import PARTITION
from tidelog_pipelines.transformations.isr_intervals import INTERVAL, states

OPEN = """
    start_ms BIGINT, leader INT, leader_epoch INT, isr ARRAY<INT>, replicas ARRAY<INT>, min_isr INT,
    newest_epoch INT
"""
_COLUMNS = [
    *PARTITION,
    *("start_ms", "end_ms", "leader", "leader_epoch", "isr", "replicas", "min_isr"),
]


class State(NamedTuple):
    """An open interval, and the newest leader epoch seen in it."""

    start_ms: int
    leader: int
    leader_epoch: int
    isr: list[int]
    replicas: list[int]
    min_isr: int
    newest_epoch: int


def closed_intervals(events: DataFrame) -> DataFrame:
    """The ended intervals of a stream of events. An open interval is not included."""
    return (
        states(events)
        .groupBy(*PARTITION)
        .applyInPandasWithState(close, INTERVAL, OPEN, "append", GroupStateTimeout.NoTimeout)
    )


def close(
    partition: tuple[Any, ...], batches: Iterable[pd.DataFrame], kept: GroupState
) -> Iterator[pd.DataFrame]:
    """The intervals of a partition that end with the new events, in order of time."""
    arrived = pd.concat(list(batches)).sort_values(["ts", "leader_epoch"], kind="stable")
    current: State | None = _state(*kept.get) if kept.exists else None
    ended = []
    for row in arrived.itertuples(index=False):
        now = _state(
            row.ts,
            row.leader,
            row.leader_epoch,
            row.isr,
            row.replicas,
            row.min_isr,
            row.leader_epoch,
        )
        if current is None:
            current = now
        elif now.newest_epoch < current.newest_epoch or now.start_ms < current.start_ms:
            continue  # the event is from a deposed leader, or older than the interval
        elif _is_same(now, current):
            current = current._replace(newest_epoch=now.newest_epoch)
        else:
            ended.append((*partition, current.start_ms, now.start_ms, *current[1:-1]))
            current = now
    if current is not None:
        kept.update(tuple(current))
    yield pd.DataFrame(ended, columns=_COLUMNS)


def _is_same(one: State, other: State) -> bool:
    """Whether two states are equal, apart from time and epochs."""
    return (one.leader, *one[3:-1]) == (other.leader, *other[3:-1])


def _state(
    ts: Any, leader: Any, epoch: Any, isr: Any, replicas: Any, min_isr: Any, newest: Any
) -> State:
    """Convert pandas values to plain numbers."""
    return State(
        int(ts),
        int(leader),
        int(epoch),
        [int(broker) for broker in isr],
        [int(broker) for broker in replicas],
        int(min_isr),
        int(newest),
    )
