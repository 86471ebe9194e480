"""The settings of delivery to a share group: the broker's, and those of the group itself."""

from collections.abc import Mapping

from tidelog.config.durations import duration_ms
from tidelog.config.settings import BrokerSettings
from tidelog.coordination.delivery.share_partition import DeliveryLimits
from tidelog.model.ids import Millis

_LATEST, _EARLIEST = -1, -2
_BY_DURATION = "by_duration:"


def delivery_limits(settings: BrokerSettings, own: Mapping[str, str]) -> DeliveryLimits:
    """The limits of a group with this dynamic configuration."""
    return DeliveryLimits(
        _within(
            own.get("share.record.lock.duration.ms"),
            settings.group_share_record_lock_duration_ms,
            settings.group_share_min_record_lock_duration_ms,
            settings.group_share_max_record_lock_duration_ms,
        ),
        _within(
            own.get("share.delivery.count.limit"),
            settings.group_share_delivery_count_limit,
            settings.group_share_min_delivery_count_limit,
            settings.group_share_max_delivery_count_limit,
        ),
        _within(
            own.get("share.partition.max.record.locks"),
            settings.group_share_partition_max_record_locks,
            settings.group_share_min_partition_max_record_locks,
            settings.group_share_max_partition_max_record_locks,
        ),
        own.get("share.renew.acknowledge.enable", "true").lower() == "true",
    )


def is_read_committed(own: Mapping[str, str]) -> bool:
    return own.get("share.isolation.level", "").lower() == "read_committed"


def start_timestamp(own: Mapping[str, str], wall: Millis) -> Millis:
    """The timestamp at which a new share partition starts; -1 means the end, -2 the beginning."""
    reset = own.get("share.auto.offset.reset", "latest").lower()
    if reset.startswith(_BY_DURATION):
        age = duration_ms(reset.removeprefix(_BY_DURATION))
        return _LATEST if age is None else wall - age
    return _EARLIEST if reset == "earliest" else _LATEST


def _within(own: str | None, default: int, lowest: int, highest: int) -> int:
    """A value that is set on the group, within the broker's limits; else the default."""
    return default if own is None else min(max(int(own), lowest), highest)
