"""The broker half of a node: replicas, fetchers, coordinators, registration and background work.

Invariant: the broker does not lead or follow any partition until the image contains the
registration of this process.
"""

from dataclasses import dataclass, field

from tidelog.controller.image.image import ClusterImage
from tidelog.model.ids import TopicId
from tidelog.node.controller.broker_lifecycle import Lifecycle
from tidelog.node.controller.recently_fenced import RecentlyFencedBrokers
from tidelog.node.coordinators.coordinators import Coordinators
from tidelog.node.events.replica_states import ReplicaStates
from tidelog.node.metadata.current_image import CurrentImage, ImageChange
from tidelog.node.partitions.assignments import Assignments
from tidelog.node.partitions.deletions import Deletions
from tidelog.node.partitions.fetches import Fetches
from tidelog.node.partitions.offset_queries import OffsetQueries
from tidelog.node.partitions.partitions import Partitions
from tidelog.node.partitions.queries import Queries
from tidelog.node.shares.share_fetches import ShareFetches
from tidelog.node.storage.cleaning import LogCleaner
from tidelog.node.storage.housekeeping import Housekeeping
from tidelog.node.storage.storage import Storage
from tidelog.node.storage.topic_history import TopicHistory
from tidelog.node.transactions.marker_writes import MarkerWrites
from tidelog.node.transactions.transactional_appends import TransactionalAppends


@dataclass(slots=True, eq=False)
class Broker:
    """The parts of a broker that the node and its request handlers call."""

    current: CurrentImage
    storage: Storage
    partitions: Partitions
    fetches: Fetches
    coordinators: Coordinators
    transactional_appends: TransactionalAppends
    marker_writes: MarkerWrites
    lifecycle: Lifecycle
    recently_fenced: RecentlyFencedBrokers
    assignments: Assignments
    housekeeping: Housekeeping
    cleaner: LogCleaner
    queries: Queries
    offset_queries: OffsetQueries
    deletions: Deletions
    replica_states: ReplicaStates
    share_fetches: ShareFetches
    past: TopicHistory = field(default_factory=TopicHistory)
    _has_begun: bool = False

    def start(self) -> None:
        self.housekeeping.start()
        self.cleaner.start()
        self.lifecycle.register()
        self.replica_states.start()

    def image_changed(self, change: ImageChange) -> None:
        """Lead and follow the partitions that the image assigns to this broker."""
        old, new, by_records = change
        if self._has_begun:
            self.assignments.apply(old, new, by_records=by_records)
            return
        if not by_records and old.offset >= 0:
            self.past.snapshot_loaded(old, new)
        if self.lifecycle.is_registered_in(new):
            # Begin only with this image. Earlier images assign leaderships to an earlier run of
            # this broker, and the logs may have lost their last records since that run. If this run
            # led in the same leader epoch, two different records could get the same offset.
            self._has_begun = True
            self.lifecycle.may_be_unfenced = False
            self.assignments.sort_out_strays(new, self.past)
            self.assignments.apply(ClusterImage(), new, by_records=by_records)

    def settle_deletions(self, change: ImageChange) -> None:
        """Answer the DeleteRecords requests that waited only for brokers that are now gone."""
        if change.old.brokers is not change.new.brokers:
            for replica in self.partitions:
                replica.settle_deletions()

    def topic_removed(self, topic_id: TopicId, name: str) -> None:
        """Remember that the topic was deleted, so that its data on disk can be deleted too."""
        if not self._has_begun:
            self.past.removed[topic_id] = name

    def close(self) -> None:
        """Shut down cleanly: end the work of all coordinators and close every log."""
        self.cleaner.close()
        self.coordinators.resign_all()
        self.storage.close(self.partitions, self.lifecycle.epoch_in(self.current.image))
