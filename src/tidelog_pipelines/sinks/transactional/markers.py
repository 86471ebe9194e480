"""Markers: how a query knows which of its transactions are committed.

Each transaction also commits an offset to a group that belongs to the query: the number of the
micro-batch plus one, under the topic's partition that has the number of the writer. Records and
offset are committed together or not at all. So the marker of a writer names the last micro-batch
that this writer has committed, whatever happened to the process that wrote it.

The functions of this module decide; they do no I/O.
"""

from collections.abc import Mapping
from typing import NamedTuple

FIRST_DAY_MS = 24 * 60 * 60 * 1000
"""For this long, a marker cannot have expired: brokers keep offsets for seven days by default."""


class Marker(NamedTuple):
    """The last micro-batch that a writer has committed."""

    epoch: int
    writers: int
    """How many writers the micro-batch had."""
    plan: str
    """A digest of the offsets that the micro-batch covers."""

    @property
    def offset(self) -> int:
        """The marker as an offset. Offset 0 would look like the start of a topic."""
        return self.epoch + 1

    @property
    def metadata(self) -> str:
        return f"{self.writers} {self.plan}"


def read_marker(offset: int, metadata: str | None) -> Marker | None:
    """The marker in a committed offset. None if nothing is committed."""
    if offset < 1:
        return None
    writers, _, plan = (metadata or "").partition(" ")
    return Marker(offset - 1, int(writers) if writers.isdigit() else 0, plan)


class Refused(Exception):
    """The micro-batch must not be written. The message is one sentence for the user."""


class Planned(NamedTuple):
    """A micro-batch as the checkpoint has it."""

    epoch: int
    plan: str
    time_ms: int
    """When Spark planned the micro-batch. A micro-batch that is tried again keeps this time."""


def check(planned: Planned, markers: Mapping[int, Marker], now_ms: int, *, rewrites: bool) -> None:
    """Raise `Refused` if the markers do not belong to this checkpoint, or if they have expired.

    With `rewrites`, a micro-batch whose markers may have expired is written.
    """
    epoch = planned.epoch
    newest = max((one.epoch for one in markers.values()), default=-1)
    if newest > epoch:
        raise Refused(
            f"the topic has micro-batches of this query up to number {newest}, and the checkpoint "
            f"is at number {epoch}: it was replaced by an older copy. Start with a new checkpoint, "
            "at the offsets that fit the topic."
        )
    if any(one.epoch == epoch and one.plan != planned.plan for one in markers.values()):
        raise Refused(
            f"micro-batch {epoch} was committed with other source offsets than the checkpoint has "
            "for it: the checkpoint has lost its last entries. Start with a new checkpoint, at the "
            "offsets that fit the topic."
        )
    is_old = now_ms - planned.time_ms > FIRST_DAY_MS
    if newest < epoch and is_old and not rewrites:
        raise Refused(
            f"micro-batch {epoch} was planned more than a day ago, and no marker shows whether it "
            "was committed: markers expire. Compare the topic with the source. If the micro-batch "
            "is not in the topic, start once with --rewrite; if it is, use a new checkpoint."
        )


def must_keep_writers(epoch: int, markers: Mapping[int, Marker]) -> bool:
    """Whether a part of the micro-batch is committed, so that its rows must be divided as before.

    Call this only after all earlier writers are fenced, so that no marker can be added meanwhile.
    """
    return any(one.epoch == epoch for one in markers.values())
