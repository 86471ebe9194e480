"""Faults as values: the kind, the machines, the time and the duration.

The start and end of a fault do not depend on other faults. So any fault can be removed from a
schedule without changing the others. `KINDS` describes each kind. `sim/faults/strikes.py` executes
faults, and `sim/faults/budget.py` defines the faults that the protocol must survive.
"""

from dataclasses import dataclass

from tidelog.model.ids import Millis, NodeId

LEADER: NodeId = 0
"""Stands for the leader of the first partition in the newest image when the fault starts."""
CONTROLLER: NodeId = -1
"""Stands for the active controller when the fault starts."""
NEXT_LEADER: NodeId = -2
"""Stands for the first in-sync follower of the first partition, preferably not the controller."""
LAST_FOLLOWER: NodeId = -3
"""Stands for the last follower of the first partition, preferably not the controller."""

CLOCK_STEP = "clock-step"

KINDS: dict[str, str] = {
    "kill": "the process ends (kill -9), its writes survive, and it starts again later",
    "power-loss": "the machine loses power: unsynced writes may be lost or torn",
    "quick-restart": "a machine loses power, and restarts before any timeout",
    "blackout": "every machine loses power at once",
    "shutdown": "a controlled shutdown, and a start later",
    "pause": "the process stops for a while, as in a long garbage collection",
    "isolate": "a machine is cut off from all others, clients included",
    "sever": "a machine is cut off from all others but one",
    "partition": "two machines cannot reach each other, in both directions",
    "one-way": "data from one machine to another does not arrive; the other direction works",
    "reset": "the connections between two machines break, and data in transit is lost",
    "slow-link": "data to and from one machine takes much longer",
    "lossy-link": "segments are lost; they and all later ones wait for a retransmission",
    "slow-disk": "every fsync of one machine takes very long",
    "full-disk": "no file of one machine can grow",
    "read-only-disk": "the file system of one machine becomes read-only",
    "failing-fsync": "fsync fails; unsynced data is lost or torn",
    "flipped-bit": "a bit in the unsynced tail of a log flips while its node is down",
    "damage": "a file of one machine is changed, cut, deleted or swapped while it is down",
    CLOCK_STEP: "a machine's clock is set forward or back by up to two days, and corrected later",
    "drift": "a machine's clock runs faster or slower than the others'",
}
"""Every kind of fault, with its description."""


@dataclass(frozen=True)
class Fault:
    """A fault; `nodes` are its machines, in the order that the kind defines."""

    at_ms: Millis
    """The time since the workload began."""
    kind: str
    nodes: tuple[NodeId, ...]
    lasts_ms: Millis = 0
    amount: int = 0
    """The size of the fault, in a unit that depends on its kind.

    The amount is the added delay in ms (slow-link, slow-disk), the lost segments per thousand
    (lossy-link), the drift in parts per thousand, or the clock step in ms. For damage, the amount
    is 1 if a controlled shutdown precedes the damage, and 0 if a kill precedes it. For a blackout,
    the amount is the longest delay in ms before a node starts again.
    """

    def __post_init__(self) -> None:
        assert self.kind in KINDS, f"unknown kind of fault: {self.kind}"

    def __str__(self) -> str:
        where = ",".join(map(_called, self.nodes)) or "everywhere"
        lasting = f" for {self.lasts_ms / 1000:.3f} s" if self.lasts_ms else ""
        amount = f" by {self.amount}" if self.amount else ""
        return f"{self.at_ms / 1000:8.3f} s  {self.kind} {where}{amount}{lasting}"


_ROLES = {
    LEADER: "leader",
    CONTROLLER: "controller",
    NEXT_LEADER: "next leader",
    LAST_FOLLOWER: "last follower",
}


def _called(node: NodeId) -> str:
    return _ROLES.get(node, f"node{node}")
