"""The replayed state of the share partitions of one shard."""

from collections.abc import Iterator
from dataclasses import dataclass

from tidelog.controller.image.image import ClusterImage
from tidelog.coordination.delivery.stored_state import StateBatch, combine
from tidelog.coordination.share_state.share_records import (
    SharePartitionKey,
    ShareSnapshot,
    ShareStateRecord,
    ShareUpdate,
)
from tidelog.model.ids import LeaderEpoch, Millis, Offset


@dataclass(slots=True)
class StoredShare:
    """The state of one share partition."""

    snapshot_epoch: int
    state_epoch: int
    leader_epoch: LeaderEpoch
    start_offset: Offset
    delivery_complete_count: int
    batches: tuple[StateBatch, ...]
    create_timestamp: Millis
    fence_leader_epoch: LeaderEpoch
    """The highest leader epoch since the state was created; a lower one is fenced."""
    snapshot_offset: Offset
    """The offset of the last snapshot; earlier records of the share partition are not needed."""
    updates: int = 0
    """The number of updates since the last snapshot."""

    def snapshot(self, snapshot_epoch: int, wall: Millis) -> ShareSnapshot:
        """The current state as a new snapshot."""
        return ShareSnapshot(
            snapshot_epoch=snapshot_epoch,
            state_epoch=self.state_epoch,
            leader_epoch=self.leader_epoch,
            start_offset=self.start_offset,
            delivery_complete_count=self.delivery_complete_count,
            create_timestamp=wall,
            write_timestamp=wall,
            batches=self.batches,
        )


class ShareStates:
    def __init__(self) -> None:
        self._states: dict[SharePartitionKey, StoredShare] = {}

    def __getitem__(self, key: SharePartitionKey) -> StoredShare:
        return self._states[key]

    def __len__(self) -> int:
        return len(self._states)

    def get(self, key: SharePartitionKey) -> StoredShare | None:
        return self._states.get(key)

    def replay(self, record: ShareStateRecord, offset: Offset) -> None:
        known = self._states.get(record.key)
        match record.value:
            case None:
                self._states.pop(record.key, None)
            case ShareSnapshot() as snapshot:
                fence = snapshot.leader_epoch
                if known is not None:
                    fence = max(fence, known.fence_leader_epoch)
                self._states[record.key] = _from_snapshot(snapshot, fence, offset)
            case ShareUpdate() as update if known is not None:
                _merge(known, update)
            case ShareUpdate():
                pass  # its snapshot was deleted, and the state with it

    def keys_of_missing_topics(self, image: ClusterImage) -> list[SharePartitionKey]:
        return [key for key in self._states if key.topic_id not in image.topic_names]

    def cold(self, before: Millis) -> Iterator[tuple[SharePartitionKey, StoredShare]]:
        """The share partitions without a snapshot since this time, except the one written last."""
        last = max((state.snapshot_offset for state in self._states.values()), default=0)
        for key, state in list(self._states.items()):
            if state.create_timestamp <= before and state.snapshot_offset < last:
                yield key, state

    def first_needed_offset(self) -> Offset | None:
        """The first record that is needed to load the states; None if there are no states."""
        return min((state.snapshot_offset for state in self._states.values()), default=None)


def _from_snapshot(snapshot: ShareSnapshot, fence: LeaderEpoch, offset: Offset) -> StoredShare:
    return StoredShare(
        snapshot.snapshot_epoch,
        snapshot.state_epoch,
        snapshot.leader_epoch,
        snapshot.start_offset,
        snapshot.delivery_complete_count,
        snapshot.batches,
        snapshot.create_timestamp,
        fence,
        offset,
    )


def _merge(known: StoredShare, update: ShareUpdate) -> None:
    if update.start_offset != -1:
        known.start_offset = update.start_offset
    known.leader_epoch = max(known.leader_epoch, update.leader_epoch)
    known.fence_leader_epoch = max(known.fence_leader_epoch, update.leader_epoch)
    known.delivery_complete_count = update.delivery_complete_count
    known.batches = combine(known.batches, update.batches, known.start_offset)
    known.updates += 1
