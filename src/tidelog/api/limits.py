"""How large a request of each API may be: what real clients send at the scale of a node, and more.

A node holds up to about 10,000 partitions. A request that names each of them, with three replicas,
has 40,000 array elements. What goes beyond such a number is a mistake or an attack: the connection
is closed, and one line of the log tells why. Within the limits the work is done in slices.
"""

from typing import NamedTuple

_KIB = 1024
_MIB = 1024 * 1024


class RequestLimit(NamedTuple):
    elements: int
    """Of all its arrays together, nested ones included."""
    size: int
    """Of the frame, in bytes. A larger frame is refused before it is received."""


ONE = RequestLimit(1_000, 256 * _KIB)
"""About one thing, or about this cluster: a member, a producer, a broker, the quorum."""

NAMES = RequestLimit(20_000, 2 * _MIB)
"""A list of topics, groups or members by name."""

PARTITIONS = RequestLimit(50_000, 4 * _MIB)
"""Every partition of a node, with its replicas or offsets."""

MEMBER = RequestLimit(100, 8 * _MIB)
"""One member of a group, with its subscription in each of its few protocols."""

OPAQUE = RequestLimit(10_000, 8 * _MIB)
"""The assignments of all members of a group, in bytes that only clients understand."""

OFFSETS = RequestLimit(50_000, 8 * _MIB)
"""Partitions with the metadata that clients commit."""

FETCH = RequestLimit(20_000, 4 * _MIB)
"""Every partition of a node, each in a topic of its own. Decoding and encoding are not cut."""

RECORDS = RequestLimit(10_000, 2**31 - 1)
"""Carries records: `socket.request.max.bytes` is the limit."""
