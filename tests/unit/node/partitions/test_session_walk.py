"""A session gives the same answers, byte for byte, as a leader that reads all partitions each time.

Both leaders also know the same about their followers: when each fetched last, and when it was
caught up (F24, F25, F26). With a session, a fetch does not name every partition.
"""

from collections.abc import Callable
from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from tests.unit.log.support import batch, marker
from tests.unit.node.partitions.full_walk import (
    FOLLOWERS,
    PARTITIONS,
    TOPIC_ID,
    Leader,
    SessionLeader,
    WalkingLeader,
    fetching,
    next_offsets,
)

from tidelog.protocol.fetch import FetchPartition, FetchRequest
from tidelog.replication.isr.leader import IsrRefused, IsrUnanswered

CONSUMER, COMMITTED = 10, 11
READERS = (*FOLLOWERS, CONSUMER, COMMITTED)


class Both:
    """Applies the same steps to both leaders."""

    def __init__(self) -> None:
        self.sessions, self.walking = SessionLeader(), WalkingLeader()
        self._epochs = dict.fromkeys(range(PARTITIONS), 1)
        self._offsets = {reader: dict.fromkeys(range(PARTITIONS), 0) for reader in READERS}
        self._asked: dict[int, dict[int, FetchPartition]] = {reader: {} for reader in READERS}
        self._left_out: dict[int, set[int]] = {reader: set() for reader in READERS}
        self._sequences: dict[int, int] = {}

    def each(self, act: Callable[[Leader], None]) -> None:
        for leader in (self.sessions, self.walking):
            act(leader)
            leader.finish_step()
        assert self.sessions.answers == self.walking.answers
        assert self.sessions.acks == self.walking.acks
        assert self.sessions.owner.proposals == self.walking.owner.proposals

    def compare(self) -> None:
        """Compare what both leaders know.

        Do not call this after each step: `known` refreshes idle partitions, and so changes
        the state under test.
        """
        assert self.sessions.known() == self.walking.known()

    def fetch(self, reader: int, least: int, most: int, wait: int) -> None:
        """Continue from the last answer, and send only changed partitions."""
        asked = self._asked[reader]
        if asked and reader not in self.sessions.last:
            return  # the last fetch is still waiting
        if asked:
            self._offsets[reader].update(next_offsets(self.sessions.last[reader]))
        wanted = {
            index: self._wish(reader, index)
            for index in range(PARTITIONS)
            if index not in self._left_out[reader]
        }
        changed = [wish for index, wish in wanted.items() if asked.get(index) != wish]
        gone = [index for index in asked if index not in wanted]
        self._asked[reader] = wanted
        if not wanted:
            return
        message = FetchRequest(
            wait,
            least,
            most,
            isolation_level=int(reader == COMMITTED),
            topics=[(TOPIC_ID, changed)] if changed else [],
            forgotten=[(TOPIC_ID, gone)] if gone else [],
            replica_id=reader if reader in FOLLOWERS else -1,
            replica_epoch=100 + reader if reader in FOLLOWERS else -1,
        )
        self.each(lambda leader: leader.ask(reader, message))

    def keep_up(self, reader: int, times: int) -> None:
        """Fetch this many times, and let 50 ms pass after each fetch."""
        for _ in range(times):
            self.fetch(reader, 1, 5_000, 0)
            self.each(lambda leader: leader.pass_time(50))

    def _wish(self, reader: int, index: int) -> FetchPartition:
        log = self.sessions.replica(index).log
        offset = min(self._offsets[reader][index], log.log_end_offset)
        offset = max(offset, log.log_start_offset)
        self._offsets[reader][index] = offset
        last = log.epoch_at(offset - 1)
        return fetching(reader, offset, index, self._epochs[index], last)

    def append(self, indexes: list[int], count: int) -> None:
        self.each(lambda leader: leader.append(indexes, [batch(count) for _ in indexes]))

    def transact(self, index: int, ends: bool) -> None:
        """Continue a transaction, or end it."""
        if ends:
            done = [marker(7, 0, abort=True)]
            self.each(lambda leader: leader.append([index], done, is_marker=True))
            return
        sequence = self._sequences.get(index, 0)
        self._sequences[index] = sequence + 1
        data = [batch(producer=7, epoch=0, sequence=sequence, transactional=True)]
        self.each(lambda leader: leader.append([index], data))

    def write_markers(self, indexes: list[int]) -> None:
        self.each(lambda leader: leader.write_markers(indexes))

    def move_leader(self, index: int, back: bool) -> None:
        self._epochs[index] += 1
        epoch = self._epochs[index]
        self.each(lambda leader: leader.resign(index))
        if back:
            self.each(lambda leader: leader.lead(index, epoch))

    def leave_out(self, reader: int, index: int) -> None:
        self._left_out[reader] ^= {index}

    def isr(self, index: int, isr: tuple[int, ...]) -> None:
        self.each(lambda leader: leader.agree(index, (1, *isr)))

    def refuse(self, index: int, is_heard: bool) -> None:
        refusal = IsrRefused if is_heard else IsrUnanswered
        self.each(lambda leader: leader.step(index, refusal(leader.partition_epoch)))


INDEX = st.integers(0, PARTITIONS - 1)
READER = st.sampled_from(READERS)
FETCH = st.tuples(
    st.just("fetch"),
    READER,
    st.sampled_from([1, 1, 300]),
    st.sampled_from([200, 5_000]),
    st.sampled_from([0, 500, 500]),
)
APPEND = st.tuples(st.just("append"), st.lists(INDEX, min_size=1, unique=True), st.integers(1, 3))
PASS_TIME = st.tuples(st.just("time"), st.sampled_from([50, 250, 500, 1_000]))
KEEP_UP = st.tuples(st.just("keep up"), READER, st.integers(2, 4))
STEPS: st.SearchStrategy[tuple[Any, ...]] = st.one_of(
    *[KEEP_UP] * 6,
    *[FETCH] * 3,
    *[APPEND] * 3,
    *[PASS_TIME] * 2,
    st.tuples(st.just("transact"), st.just(0), st.booleans()),
    st.tuples(st.just("markers"), st.lists(INDEX, min_size=2, unique=True)),
    st.tuples(st.just("start"), INDEX),
    st.tuples(st.just("flush")),
    st.tuples(st.just("compare")),
    st.tuples(st.just("move"), INDEX, st.sampled_from([True, True, False])),
    st.tuples(st.just("leave out"), READER, INDEX),
    st.tuples(st.just("isr"), INDEX, st.sampled_from([(), (2,), (3,), (2, 3)])),
    st.tuples(st.just("refuse"), INDEX, st.booleans()),
    st.tuples(st.just("lag"), st.sampled_from([0, 100, 500, 2_000])),
)


def tell(both: Both, step: tuple[Any, ...]) -> None:
    kind, *rest = step
    match kind:
        case "fetch":
            both.fetch(*rest)
        case "keep up":
            both.keep_up(*rest)
        case "append":
            both.append(*rest)
        case "time":
            both.each(lambda leader: leader.pass_time(*rest))
        case "transact":
            both.transact(*rest)
        case "markers":
            both.write_markers(*rest)
        case "start":
            both.each(lambda leader: leader.advance_start(*rest))
        case "flush":
            both.each(lambda leader: leader.finish_flush())
        case "move":
            both.move_leader(*rest)
        case "leave out":
            both.leave_out(*rest)
        case "isr":
            both.isr(*rest)
        case "refuse":
            both.refuse(*rest)
        case "compare":
            both.compare()
        case "lag":
            both.each(lambda leader: leader.check_lag(*rest))


@given(st.lists(STEPS, min_size=20, max_size=60))
def test_a_session_answers_what_a_walk_over_everything_answers(
    steps: list[tuple[Any, ...]],
) -> None:
    both = Both()
    for step in steps:
        tell(both, step)
    both.compare()


# -- sessions without changes ----------------------------------------------------------------------


def at_rest() -> Both:
    """Both followers hold all records, and no partition has changes."""
    both = Both()
    both.append([0, 1, 2], 2)
    for _ in range(2):
        for follower in FOLLOWERS:
            both.keep_up(follower, 4)
    assert not both.sessions.owner.proposals
    return both


def test_a_fetch_that_finds_nothing_moved_looks_at_no_partition() -> None:
    both = at_rest()
    before = both.sessions.looked_at

    for _ in range(5):
        both.fetch(2, 1, 5_000, 500)
        both.each(lambda leader: leader.pass_time(500))

    assert both.sessions.looked_at == before
    both.append([1], 1)
    both.fetch(2, 1, 5_000, 500)
    assert both.sessions.looked_at == before + 1


def test_f99_an_append_right_after_an_answered_fetch_is_not_overlooked() -> None:
    """The second marker is appended after the followers' fetches were read for the first one."""
    both = Both()
    both.append([0, 1], 1)
    for follower in FOLLOWERS:
        both.keep_up(follower, 1)  # has the records, but not the high watermark
        both.fetch(follower, 1, 5_000, 500)
    both.write_markers([0, 1])
    for follower in FOLLOWERS:
        both.keep_up(follower, 2)

    assert [both.sessions.replica(index).high_watermark for index in (0, 1)] == [2, 2]


def test_f24_idle_followers_stay_in_sync_though_no_partition_is_ever_mentioned() -> None:
    both = at_rest()
    for follower in FOLLOWERS:
        both.keep_up(follower, 20)
    both.each(lambda leader: leader.check_lag(500))
    both.each(lambda leader: leader.pass_time(60_000))  # in this time they do not fetch at all
    both.each(lambda leader: leader.check_lag(500))

    assert not both.sessions.owner.proposals
    both.compare()


def test_f25_a_follower_that_was_at_rest_until_the_append_had_caught_up_just_before_it() -> None:
    both = at_rest()
    for _ in range(20):
        for follower in FOLLOWERS:
            both.keep_up(follower, 1)

    both.append([0], 1)
    both.each(lambda leader: leader.check_lag(500))

    assert not both.sessions.owner.proposals, "it fetched 50 ms ago, from what was the end"
    both.compare()


def test_f26_a_follower_that_rested_and_then_does_not_follow_leaves() -> None:
    both = at_rest()
    both.append([0], 1)
    both.each(lambda leader: leader.pass_time(300))
    both.keep_up(2, 2)
    both.each(lambda leader: leader.pass_time(300))
    both.each(lambda leader: leader.check_lag(500))

    [proposal] = both.sessions.owner.proposals
    assert [member.replica for member in proposal.isr] == [1, 2]
    both.compare()


def test_what_a_session_no_longer_has_is_not_marked_for_it() -> None:
    both = at_rest()
    both.leave_out(2, 0)
    both.fetch(2, 1, 5_000, 0)
    before = both.sessions.looked_at

    both.append([0], 1)
    both.fetch(2, 1, 5_000, 0)

    assert both.sessions.looked_at == before
