"""The same intervals from a stream: what is open per partition is kept as Spark's state.

A window would not do, since an interval may last for weeks. An interval is told when the change
that ends it has come; the one that is open stays in the state.
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
    """An interval that is open, and the newest epoch that was heard of in it."""

    start_ms: int
    leader: int
    leader_epoch: int
    isr: list[int]
    replicas: list[int]
    min_isr: int
    newest_epoch: int


def closed_intervals(events: DataFrame) -> DataFrame:
    """The intervals of a stream of events that have ended."""
    return (
        states(events)
        .groupBy(*PARTITION)
        .applyInPandasWithState(close, INTERVAL, OPEN, "append", GroupStateTimeout.NoTimeout)
    )


def close(
    partition: tuple[Any, ...], batches: Iterable[pd.DataFrame], kept: GroupState
) -> Iterator[pd.DataFrame]:
    """What a partition's new events close, in the order of their time."""
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
            continue  # a deposed leader's word, or one that comes too late to be of use
        elif _is_same(now, current):
            current = current._replace(newest_epoch=now.newest_epoch)
        else:
            ended.append((*partition, current.start_ms, now.start_ms, *current[1:-1]))
            current = now
    if current is not None:
        kept.update(tuple(current))
    yield pd.DataFrame(ended, columns=_COLUMNS)


def _is_same(one: State, other: State) -> bool:
    """Whether two states are alike; time and epochs are not part of one."""
    return (one.leader, *one[3:-1]) == (other.leader, *other[3:-1])


def _state(
    ts: Any, leader: Any, epoch: Any, isr: Any, replicas: Any, min_isr: Any, newest: Any
) -> State:
    """As plain numbers, whatever pandas made of them."""
    return State(
        int(ts),
        int(leader),
        int(epoch),
        [int(broker) for broker in isr],
        [int(broker) for broker in replicas],
        int(min_isr),
        int(newest),
    )
