"""The largest accepted request of each API, well above the requests of real clients.

A node holds up to about 10,000 partitions. A request that names each of them with three replicas
has 40,000 array elements. A request above the limit is a mistake or an attack, so the broker closes
the connection and logs one line with the reason. Requests within the limit are handled in slices.
"""

from typing import NamedTuple

_KIB = 1024
_MIB = 1024 * 1024


class RequestLimit(NamedTuple):
    elements: int
    """The number of elements of all arrays together, including nested ones."""
    size: int
    """The size of the frame in bytes. A larger frame is refused before it is received."""


ONE = RequestLimit(1_000, 256 * _KIB)
"""For a request about one member, producer, broker or cluster."""

NAMES = RequestLimit(20_000, 2 * _MIB)
"""For a request with a list of topics, groups or members, by name."""

PARTITIONS = RequestLimit(50_000, 4 * _MIB)
"""For a request that may name every partition of a node, with replicas or offsets."""

MEMBER = RequestLimit(100, 8 * _MIB)
"""For JoinGroup, with the subscription of one member for each of its few protocols."""

OPAQUE = RequestLimit(10_000, 8 * _MIB)
"""For a request with the assignments of all members of a group, which are opaque bytes."""

OFFSETS = RequestLimit(50_000, 8 * _MIB)
"""For a request with partitions and the metadata that clients commit with their offsets."""

FETCH = RequestLimit(20_000, 4 * _MIB)
"""For Fetch, which may name every partition of a node. Its codec does not work in slices."""

RECORDS = RequestLimit(10_000, 2**31 - 1)
"""For a request with records, whose size is limited by `socket.request.max.bytes`."""
