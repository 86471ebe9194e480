"""The APIs of share groups: key, name, versions, handler, limit, and how to split requests."""

from tidelog.api.handler import Handler
from tidelog.api.limits import NAMES, OFFSETS, PARTITIONS, RequestLimit
from tidelog.api.shares import share_fetch, share_group_offsets, share_groups, share_state
from tidelog.api.slicing import Parts

_BY_STATE = Parts(("topics", "partitions"), ("results", "partitions"), 50)
_GROUP_IDS = Parts(("group_ids",), ("groups",), 50)
_GROUPS = Parts(("groups",), ("groups",), 50)

SHARE_APIS: tuple[tuple[int, str, int, int, Handler, RequestLimit, Parts | None], ...] = (
    (76, "ShareGroupHeartbeat", 1, 1, share_groups.heartbeat, NAMES, None),
    (77, "ShareGroupDescribe", 1, 1, share_groups.describe, NAMES, _GROUP_IDS),
    (78, "ShareFetch", 1, 2, share_fetch.fetch, OFFSETS, None),
    (79, "ShareAcknowledge", 1, 2, share_fetch.acknowledge, OFFSETS, None),
    (83, "InitializeShareGroupState", 0, 0, share_state.handle, PARTITIONS, _BY_STATE),
    (84, "ReadShareGroupState", 0, 0, share_state.handle, PARTITIONS, _BY_STATE),
    (85, "WriteShareGroupState", 0, 1, share_state.handle, PARTITIONS, _BY_STATE),
    (86, "DeleteShareGroupState", 0, 0, share_state.handle, PARTITIONS, _BY_STATE),
    (87, "ReadShareGroupStateSummary", 0, 1, share_state.handle, PARTITIONS, _BY_STATE),
    (90, "DescribeShareGroupOffsets", 0, 1, share_group_offsets.describe, PARTITIONS, _GROUPS),
    (91, "AlterShareGroupOffsets", 0, 0, share_group_offsets.change, PARTITIONS, None),
    (92, "DeleteShareGroupOffsets", 0, 0, share_group_offsets.change, NAMES, None),
)
