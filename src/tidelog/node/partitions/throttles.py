"""Replication quotas: leader.replication.throttled.rate and follower.replication.throttled.rate.

A replica is throttled only if it is not in sync and the topic's configuration lists it. In-sync
replicas are not throttled, so a throttle never delays an acknowledgement.
"""

from tidelog.config.key import BadValue
from tidelog.config.keys.broker_keys import BROKER_KEYS
from tidelog.controller.image.image import BROKER_RESOURCE, CLUSTER_DEFAULT, ClusterImage
from tidelog.model.ids import Millis, NodeId
from tidelog.node.clock import Clock
from tidelog.node.metadata.current_image import ImageChange
from tidelog.node.partitions.replica import Replica
from tidelog.replication.throttle import NO_LIMIT, Throttle

LEADER_RATE = "leader.replication.throttled.rate"
FOLLOWER_RATE = "follower.replication.throttled.rate"


class Throttles:
    def __init__(self, me: NodeId, clock: Clock) -> None:
        self._me = me
        self._clock = clock
        self.leader = Throttle()
        self.follower = Throttle()

    def image_changed(self, change: ImageChange) -> None:
        """Apply this broker's dynamic rates. If it has none, apply the rates for all brokers."""
        if change.old.configs is change.new.configs:
            return
        image, now = change.new, self._clock.now
        self.leader.set_rate(self._rate(image, LEADER_RATE), now)
        self.follower.set_rate(self._rate(image, FOLLOWER_RATE), now)

    def _rate(self, image: ClusterImage, key: str) -> int:
        for resource in (str(self._me), CLUSTER_DEFAULT):
            text = image.config(BROKER_RESOURCE, resource).get(key)
            if text is not None:
                try:
                    rate = BROKER_KEYS[key].parse(text)
                except BadValue:
                    continue
                assert isinstance(rate, int)
                return rate
        return NO_LIMIT

    # -- as leader ---------------------------------------------------------------------------------

    def holds_back(self, replica: Replica, follower: NodeId) -> bool:
        """Whether the quota is exceeded, so that this follower gets no records of the partition."""
        return self._counts(replica, follower) and self.leader.is_exceeded(self._clock.now)

    def sent(self, replica: Replica, follower: NodeId, size: int) -> None:
        if self._counts(replica, follower):
            self.leader.record(size, self._clock.now)

    def _counts(self, replica: Replica, follower: NodeId) -> bool:
        leader = replica.leader
        return (
            self.leader.is_on
            and replica.throttling.as_leader
            and leader is not None
            and follower not in leader.isr
        )

    # -- as follower -------------------------------------------------------------------------------

    def wait_ms(self, replica: Replica) -> Millis:
        """How long this replica, which is not in sync, must wait before its next fetch."""
        if not replica.throttling.as_follower:
            return 0
        return self.follower.wait_ms(self._clock.now)

    def taken(self, replica: Replica, size: int) -> None:
        """Count the bytes that this replica, which is not in sync, has fetched."""
        if replica.throttling.as_follower:
            self.follower.record(size, self._clock.now)
