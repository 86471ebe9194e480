"""The share partitions whose partitions this node leads.

Invariant: a share partition is used only in the leader epoch in which it was loaded. When the
leadership changes, the share partition is dropped and its waiting requests fail. The next leader
reads the state from the share coordinator, which fences the writes of this one.
"""

from collections.abc import Callable, Mapping
from itertools import count
from typing import TypeAlias

from tidelog.config.settings import BrokerSettings
from tidelog.controller.image.image import GROUP_RESOURCE
from tidelog.coordination.delivery.acknowledgements import AcknowledgementBatch
from tidelog.coordination.delivery.group_limits import delivery_limits, start_timestamp
from tidelog.coordination.delivery.share_partition import DeliveryLimits, SharePartition
from tidelog.coordination.delivery.stored_state import StoredState
from tidelog.coordination.share_state.share_records import SharePartitionKey
from tidelog.model.effects import (
    FindOffsets,
    OffsetFound,
    OffsetQuery,
)
from tidelog.model.errors import ErrorCode
from tidelog.model.ids import NO_OFFSET, LeaderEpoch, Millis, Offset, TopicPartition
from tidelog.model.share_effects import (
    RecordsAcknowledged,
    SharedPartition,
)
from tidelog.node.clock import Clock
from tidelog.node.metadata.current_image import ImageChange
from tidelog.node.partitions.offset_queries import OffsetQueries
from tidelog.node.partitions.partitions import Partitions
from tidelog.node.partitions.replica import Replica
from tidelog.node.requests.parking import PARKED
from tidelog.node.shares.share_state_client import ShareStateClient
from tidelog.node.timers import Timer

_FENCING = {
    ErrorCode.fenced_leader_epoch: ErrorCode.not_leader_or_follower,
    ErrorCode.fenced_state_epoch: ErrorCode.not_leader_or_follower,
    ErrorCode.unknown_topic_or_partition: ErrorCode.unknown_topic_or_partition,
    ErrorCode.invalid_request: ErrorCode.group_id_not_found,
}
"""The errors of the share coordinator after which a share partition must be loaded again, and the
errors that the client gets instead."""

Acknowledged: TypeAlias = Callable[[RecordsAcknowledged], None]


class LedShare:
    """One share partition: loading, or in use."""

    def __init__(
        self, key: SharePartitionKey, partition: TopicPartition, leader_epoch: LeaderEpoch
    ) -> None:
        self.key = key
        self.partition = partition
        self.leader_epoch = leader_epoch
        self.share: SharePartition | None = None
        """None until the state is loaded."""
        self.is_dropped = False
        self.is_unused = False
        """Whether the group has no share session on this node any more."""
        self.opening: list[Callable[[ErrorCode], None]] = []
        """Called when the state is loaded, or could not be loaded."""
        self.waiting: dict[Callable[[], None], None] = {}
        """Called when records may have become available."""
        self.tickets: dict[int, Acknowledged] = {}
        self.timer: Timer | None = None

    def wake(self) -> None:
        for wake in list(self.waiting):
            wake()


class LedShares:
    def __init__(
        self,
        settings: BrokerSettings,
        clock: Clock,
        partitions: Partitions,
        offsets: OffsetQueries,
        client: ShareStateClient,
    ) -> None:
        self._settings = settings
        self._clock = clock
        self._partitions = partitions
        self._offsets = offsets
        self._client = client
        self._shares: dict[SharePartitionKey, LedShare] = {}
        self._tickets = count(1)

    def __len__(self) -> int:
        return len(self._shares)

    # -- loading and dropping ----------------------------------------------------------------------

    def open(self, group: str, of: SharedPartition) -> LedShare | ErrorCode:
        """The share partition, which may still be loading."""
        replica = self._leading(of)
        if isinstance(replica, ErrorCode):
            return replica
        assert replica.leader is not None
        key = SharePartitionKey(group, of.topic_id, of.partition.partition)
        led = self._shares.get(key)
        if led is not None and led.leader_epoch == replica.leader.epoch:
            led.is_unused = False
            return led
        if led is not None:
            self._drop(led, ErrorCode.not_leader_or_follower)
        led = self._shares[key] = LedShare(key, of.partition, replica.leader.epoch)
        opened = led
        self._client.read(key, led.leader_epoch, lambda found: self._read(opened, found))
        return led

    def known(self, group: str, of: SharedPartition) -> LedShare | None:
        return self.loaded(SharePartitionKey(group, of.topic_id, of.partition.partition))

    def loaded(self, key: SharePartitionKey) -> LedShare | None:
        led = self._shares.get(key)
        return None if led is None or led.share is None else led

    def sessions_ended(self, group: str) -> None:
        """Drop the share partitions of a group that has no share session on this node any more.

        The next session loads the state again. It may have changed, because the offsets of a group
        without members can be altered, and the group can be deleted and created again.
        """
        for led in [led for key, led in self._shares.items() if key.group == group]:
            led.is_unused = True
            self._drop_if_unused(led)

    def _drop_if_unused(self, led: LedShare) -> None:
        is_busy = led.share is None or led.opening or led.waiting or led.share.has_changes
        if led.is_unused and not led.is_dropped and not is_busy:
            self._drop(led, ErrorCode.not_leader_or_follower)

    def image_changed(self, change: ImageChange) -> None:
        if not self._shares or change.new.topics is change.old.topics:
            return
        for led in list(self._shares.values()):
            replica = self._leading(SharedPartition(led.key.topic_id, led.partition))
            if isinstance(replica, ErrorCode):
                self._drop(led, replica)
            elif replica.leader is None or replica.leader.epoch != led.leader_epoch:
                self._drop(led, ErrorCode.not_leader_or_follower)

    def log_start(self, led: LedShare) -> Offset | None:
        replica = self._partitions.get(led.partition)
        return None if replica is None else replica.log.log_start_offset

    def _leading(self, of: SharedPartition) -> Replica | ErrorCode:
        replica = self._partitions.leading(of.partition)
        if isinstance(replica, Replica) and replica.topic_id != of.topic_id:
            return ErrorCode.unknown_topic_id
        return replica

    def _drop(self, led: LedShare, error: ErrorCode) -> None:
        if self._shares.get(led.key) is led:
            del self._shares[led.key]
        led.is_dropped = True
        if led.timer is not None:
            led.timer.cancel()
        tickets, led.tickets = led.tickets, {}
        for acknowledged in tickets.values():
            acknowledged(RecordsAcknowledged(error))
        opening, led.opening = led.opening, []
        for opened in opening:
            opened(error)
        led.wake()

    def _read(self, led: LedShare, found: StoredState | ErrorCode) -> None:
        if led.is_dropped:
            return
        if isinstance(found, ErrorCode):
            self._drop(led, _FENCING.get(found, found))
        elif found.start_offset != NO_OFFSET:
            self._activate(led, found)
        else:
            self._find_start(led, found)

    def _find_start(self, led: LedShare, found: StoredState) -> None:
        """Choose the start of a share partition that was never consumed, and persist it."""
        when = start_timestamp(self.config_of(led.key.group), self._clock.wall)
        query = FindOffsets([OffsetQuery(led.partition, when)])

        def start_found(answers: list[OffsetFound]) -> None:
            (answer,) = answers
            if led.is_dropped:
                return
            if answer.error is not ErrorCode.none:
                self._drop(led, answer.error)
                return
            start = answer.offset
            if start == NO_OFFSET:  # there is no record that is new enough
                replica = self._partitions.get(led.partition)
                start = 0 if replica is None else replica.high_watermark
            self._activate(led, found._replace(start_offset=start), is_new=True)

        results = self._offsets.find(query, start_found, 0)
        if results is not PARKED:
            start_found(results)

    def _activate(self, led: LedShare, state: StoredState, *, is_new: bool = False) -> None:
        limits = self.limits_of(led.key.group)
        share = SharePartition(state, led.leader_epoch, limits)

        def opened(outcome: RecordsAcknowledged) -> None:
            if outcome.error is not ErrorCode.none:
                self._drop(led, outcome.error)
                return
            opening, led.opening = led.opening, []
            for ready in opening:
                ready(ErrorCode.none)
            self._drop_if_unused(led)

        led.share = share
        start = self.log_start(led)
        if start is not None:
            share.log_start_moved(start)
        if is_new:
            ticket = next(self._tickets)
            led.tickets[ticket] = opened
            share.persist_start(ticket)
            self.flush(led)
        else:
            opened(RecordsAcknowledged(ErrorCode.none))

    # -- acknowledgements and locks ----------------------------------------------------------------

    def acknowledge(
        self,
        led: LedShare,
        member: str,
        batches: list[AcknowledgementBatch],
        done: Acknowledged,
    ) -> None:
        assert led.share is not None
        ticket = next(self._tickets)
        led.share.limits = self.limits_of(led.key.group)
        refused = led.share.acknowledge(member, batches, ticket, self._clock.now)
        if refused is not None:
            done(RecordsAcknowledged(refused.error, refused.message))
        elif not led.share.is_waiting(ticket):
            done(RecordsAcknowledged(ErrorCode.none))
        else:
            led.tickets[ticket] = done
        self.flush(led)

    def release(self, led: LedShare, member: str, done: Acknowledged) -> None:
        assert led.share is not None
        ticket = next(self._tickets)
        led.share.release(member, ticket)
        if led.share.is_waiting(ticket):
            led.tickets[ticket] = done
        else:
            done(RecordsAcknowledged(ErrorCode.none))
        self.flush(led)

    def flush(self, led: LedShare) -> None:
        """Send the next write, if there is one, and set the timer of the locks."""
        assert led.share is not None
        if led.is_dropped:
            return
        write = led.share.next_write()
        if write is not None:
            self._client.write(led.key, write, lambda error: self._written(led, error))
        self._set_timer(led)

    def _written(self, led: LedShare, error: ErrorCode) -> None:
        if led.is_dropped:
            return
        assert led.share is not None
        outcome = RecordsAcknowledged(_FENCING.get(error, error))
        for ticket in led.share.written(error):
            acknowledged = led.tickets.pop(ticket, None)
            if acknowledged is not None:
                acknowledged(outcome)
        if error in _FENCING:
            self._drop(led, outcome.error)
            return
        self.flush(led)
        led.wake()
        self._drop_if_unused(led)

    def _set_timer(self, led: LedShare) -> None:
        assert led.share is not None
        if led.timer is not None:
            led.timer.cancel()
            led.timer = None
        deadline = led.share.next_deadline()
        if deadline is not None:
            led.timer = self._clock.timers.at(deadline, lambda: self._expire(led))

    def _expire(self, led: LedShare) -> None:
        led.timer = None
        if led.is_dropped or led.share is None:
            return
        expired = led.share.expire(self._clock.now)
        self.flush(led)
        if expired:
            led.wake()

    def now(self) -> Millis:
        return self._clock.now

    def config_of(self, group: str) -> Mapping[str, str]:
        """The dynamic configuration of a group."""
        return self._partitions.current.image.config(GROUP_RESOURCE, group)

    def limits_of(self, group: str) -> DeliveryLimits:
        return delivery_limits(self._settings, self.config_of(group))
