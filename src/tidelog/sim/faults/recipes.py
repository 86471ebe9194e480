"""Recipes: sequences of faults that reveal a known wrong rule, but rarely occur by chance.

Each recipe is a short schedule, whose times vary randomly around the critical times.
"""

from collections.abc import Callable
from typing import TypeAlias

from tidelog.model.ids import Millis, NodeId
from tidelog.sim.faults.faults import CONTROLLER, LAST_FOLLOWER, LEADER, NEXT_LEADER, Fault
from tidelog.sim.machines.dice import SeededDice

Recipe: TypeAlias = Callable[[SeededDice, Millis, int], tuple[Fault, ...]]


def last_one_standing(dice: SeededDice, at: Millis, nodes: int) -> tuple[Fault, ...]:
    """While the leader is cut off from its followers, it loses power and restarts (F18, F43)."""
    alone = 1_000 + dice.below(3_000)
    gone = 200 + dice.below(1_500)
    return (
        Fault(at, "sever", (LEADER, CONTROLLER), alone + gone + dice.below(3_000)),
        Fault(at + alone, "power-loss", (LEADER,), gone),
    )


def unheard_commit(dice: SeededDice, at: Millis, nodes: int) -> tuple[Fault, ...]:
    """The next leader does not know of a commit, and a follower returns without the record (F13).

    The last follower is killed, so the leader may commit without that follower. The leader's link
    is slow. Then the leader is killed, and the other follower is elected before it learns of the
    commit. The last follower starts again, and registers before it can reach the new leader. A slow
    link of the last follower delays its fetches.
    """
    slow = 200 + dice.below(400)
    down = dice.below(300)
    gone = down + slow + dice.below(2 * slow)
    return (
        Fault(at, "slow-link", (LEADER,), gone + 500, slow),
        Fault(at + down, "slow-link", (LAST_FOLLOWER,), gone + 4_000, 50 + dice.below(250)),
        Fault(at + down + 1, "kill", (LAST_FOLLOWER,), gone - down + dice.below(300)),
        Fault(at + gone, "partition", (NEXT_LEADER, LAST_FOLLOWER), 1_000 + dice.below(1_500)),
        Fault(at + gone + 1, "kill", (LEADER,), 4_000 + dice.below(2_000)),
    )


def deaf_follower(dice: SeededDice, at: Millis, nodes: int) -> tuple[Fault, ...]:
    """A follower has records that the next leader lacks, and learns of no later election (F04).

    The leader fails, returns as a follower, and leads again. The follower still assumes the
    leader's first epoch, and fetches past the records that the leader has truncated meanwhile.
    """
    gone = 50 + dice.below(500)
    away = 100 + dice.below(400)
    again = gone + away + 600 + dice.below(1_500)
    return (
        Fault(at, "partition", (LEADER, NEXT_LEADER), gone),
        Fault(at + gone - 2, "partition", (LAST_FOLLOWER, CONTROLLER), again + 2_500),
        Fault(at + gone - 1, "kill", (LEADER,), away),
        Fault(at + again, "kill", (LEADER,), 1_000 + dice.below(1_500)),
    )


def back_as_the_leader_goes(dice: SeededDice, at: Millis, nodes: int) -> tuple[Fault, ...]:
    """Right after a commit, the leader fails at the moment when a follower returns (F13)."""
    away = 800 + dice.below(2_500)
    return (
        Fault(at, "pause", (1 + dice.below(nodes),), away),
        Fault(at + away - 60 + dice.below(120), "kill", (LEADER,), 500 + dice.below(2_000)),
    )


def quick_leader_changes(dice: SeededDice, at: Millis, nodes: int) -> tuple[Fault, ...]:
    """Leaders change quickly, and one follower does not learn of the changes (F03, F04, F05)."""
    deaf: NodeId = 1 + dice.below(nodes)
    first = 100 + dice.below(1_200)
    second = first + 100 + dice.below(1_500)
    return (
        Fault(at, "sever", (deaf, LEADER), second + dice.below(2_000)),
        Fault(at + first, "pause", (LEADER,), 300 + dice.below(2_500)),
        Fault(at + second, "isolate", (LEADER,), 300 + dice.below(2_000)),
    )


def late_fetch_after_loss(dice: SeededDice, at: Millis, nodes: int) -> tuple[Fault, ...]:
    """A fetch arrives after its sender has lost the records below the fetch offset (F15, F17)."""
    follower: NodeId = 1 + dice.below(nodes)
    return (
        Fault(at, "slow-link", (follower,), 2_000, 100 + dice.below(600)),
        Fault(at + dice.below(800), "quick-restart", (follower,), 200),
    )


RECIPES: tuple[Recipe, ...] = (
    last_one_standing,
    back_as_the_leader_goes,
    quick_leader_changes,
    late_fetch_after_loss,
    unheard_commit,
    deaf_follower,
)
