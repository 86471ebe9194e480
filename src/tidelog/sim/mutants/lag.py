"""The rule of replica.lag.max.messages, which Kafka removed in 0.9.

By this rule, a follower is out of sync if it lacks more records than the configured maximum. No
maximum is right, because a large enough burst exceeds it. The ISR then shrinks during the burst and
grows again afterwards.
"""

from collections.abc import Iterable

from tidelog.model.ids import Millis, Offset
from tidelog.replication.isr.progress import FollowerProgress
from tidelog.sim.mutants.mutant import Mutant
from tidelog.sim.rules import Replacement

LAG_MAX_MESSAGES = 4_000


def _by_messages() -> Iterable[Replacement]:
    right = FollowerProgress.is_caught_up

    def is_caught_up(
        self: FollowerProgress, leader_end: Offset, now: Millis, max_lag: Millis
    ) -> bool:
        return leader_end - self.end <= LAG_MAX_MESSAGES and right(self, leader_end, now, max_lag)

    yield Replacement(
        "tidelog.replication.isr.progress:FollowerProgress.is_caught_up", is_caught_up
    )


LAG = (
    Mutant(
        "lag-max-messages",
        (),
        f"A follower more than {LAG_MAX_MESSAGES} records behind is out of sync at once.",
        _by_messages,
        "a_burst_does_not_make_the_in_sync_set_flap",
    ),
)
