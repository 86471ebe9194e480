"""Scenarios of the metadata quorum. Every answer ends with the state of the member.

A command gives a log by its records' epochs: `log=1x3,2x1` has three records of epoch 1 and one of
epoch 2. An answer shows only the log's end: in `2@4`, the last record is of epoch 2, and the next
offset is 4. `2/b` is node 2 on disk b.
A command goes to the member that started last, or to the member that `at=` names.

start me=1 voters=1,2,3 [epoch=4] [leader=2] [voted=2] [log=1x3]     no epoch: a new disk
restart                                                              a new process, same files
vote from=2 epoch=5 log=4@9 [pre] [asks=1/a]                         requests of other members
begin leader=2 epoch=5 [asks=1/a] | end leader=2 epoch=5 successors=3,1
fetch from=2 offset=9 [last=4]                                       `last`: epoch of last record
granted from=2 epoch=5 [pre] | denied from=2 epoch=5 [leader=3] [pre]    answers of other members
acknowledged from=2 epoch=5 | answer from=2 epoch=5 leader=2 [success]
refused peer=2                                                       node 2's port refuses
append log=5x2 [voters=1/a,2/b] | diverged epoch=2 end=7 | snapshot end=3@9 voters=1/a,2/b
committed to=9                                                       the leader has sent this offset
add voter=4/d | remove voter=4/d                                     at the leader
wait ms=500 | caught_up | shutdown
"""

from collections.abc import Callable
from pathlib import Path

import pytest
from tests.scenarios.quorum.member import TIMEOUTS, Member, replica, shown, voter_set
from tests.scenarios.transcript import Words, check, transcripts

from tidelog.model.effects import EpochEnd
from tidelog.model.errors import ErrorCode
from tidelog.model.ids import NO_NODE
from tidelog.replication import divergence
from tidelog.replication.quorum import events as q
from tidelog.replication.quorum import voters as rules
from tidelog.replication.quorum.roles import Leader
from tidelog.replication.quorum.state import LogEnd, QuorumState, ReplicaKey, Voter, VoterSet

HERE = Path(__file__).parent
TICKET = 1


def asked(words: Words) -> ReplicaKey | None:
    return replica(words.text("asks")) if "asks" in words else None


def log_end(text: str) -> LogEnd:
    return LogEnd(*map(int, text.split("@")))


def epochs(runs: list[str]) -> list[int]:
    pairs = (run.split("x") for run in runs)
    return [int(epoch) for epoch, times in pairs for _ in range(int(times))]


def voted(words: Words, *, granted: bool) -> q.VoteAnswered:
    source, epoch = words.number("from"), words.number("epoch")
    return q.VoteAnswered(source, epoch, words.number("leader", NO_NODE), granted, "pre" in words)


EVENTS: dict[str, Callable[[Words], q.QuorumEvent]] = {
    "vote": lambda words: q.VoteRequested(
        TICKET,
        replica(words.text("from")),
        words.number("epoch"),
        log_end(words.text("log")),
        "pre" in words,
        asked(words),
    ),
    "begin": lambda words: q.EpochBegun(
        TICKET, words.number("leader"), words.number("epoch"), asked(words)
    ),
    "end": lambda words: q.EpochEnded(
        TICKET, words.number("leader"), words.number("epoch"), words.numbers("successors")
    ),
    "granted": lambda words: voted(words, granted=True),
    "denied": lambda words: voted(words, granted=False),
    "acknowledged": lambda words: q.EpochAcknowledged(
        words.number("from"), words.number("epoch"), NO_NODE, ErrorCode.none
    ),
    "answer": lambda words: q.LeaderAnswered(
        words.number("from"), words.number("epoch"), words.number("leader"), "success" in words
    ),
    "refused": lambda words: q.PeerRefused(words.number("peer")),
    "caught_up": lambda words: q.CaughtUp(),
    "shutdown": lambda words: q.ShutdownBegun(),
}


class Storyteller:
    def __init__(self) -> None:
        self.now = 0
        self.members: dict[int, Member] = {}
        self.last = NO_NODE

    def respond(self, line: str) -> str:
        words = Words(line)
        self.last = words.number("at", self.last)
        if words.command in EVENTS:
            lines = self.member.step(EVENTS[words.command](words), self.now)
        else:
            lines = getattr(self, f"do_{words.command}")(words)
        words.check_all_read()
        states = self.members.values() if words.command == "wait" else [self.member]
        return "\n".join([*lines, *(member.state() for member in states)])

    @property
    def member(self) -> Member:
        return self.members[self.last]

    # -- start and time ----------------------------------------------------------------------------

    def do_start(self, words: Words) -> list[str]:
        me, saved = replica(words.text("me")), None
        if "epoch" in words:
            vote = replica(words.text("voted")) if "voted" in words else None
            saved = QuorumState(words.number("epoch"), words.number("leader", NO_NODE), vote)
        member = Member(me, voter_set(words.list("voters")), saved, epochs(words.list("log", "")))
        self.last, self.members[me.id] = me.id, member
        return member.start(self.now)

    def do_restart(self, words: Words) -> list[str]:
        return self.member.restart(self.now)

    def do_wait(self, words: Words) -> list[str]:
        """Let time pass at every member, in the order of their deadlines."""
        end, lines = self.now + words.number("ms"), list[str]()
        while True:
            deadlines = (
                (member.machine.next_deadline(), id_) for id_, member in self.members.items()
            )
            due = [(at, id_) for at, id_ in deadlines if at is not None and at <= end]
            if not due:
                self.now = end
                return lines
            at, id_ = min(due)
            self.now = max(self.now, at)
            effects = self.members[id_].step(q.TimePassed(), self.now)
            lines += [f"at {self.now} ms, {id_}: {effect}" for effect in effects]

    # -- the log and the voters --------------------------------------------------------------------

    def do_fetch(self, words: Words) -> list[str]:
        key, offset, member = replica(words.text("from")), words.number("offset"), self.member
        if "last" in words:
            last, start = words.number("last"), member.base.offset
            parting = divergence.diverging(member.epoch_end(last), last, offset, start)
            if parting is not None:
                return [f"diverging: epoch {parting.epoch} ends at {parting.end_offset}"]
        return member.step(q.ReplicaFetched(key, offset), self.now)

    def do_append(self, words: Words) -> list[str]:
        voters = voter_set(words.list("voters")) if "voters" in words else None
        return self.member.append(epochs(words.list("log")), voters, self.now)

    def do_diverged(self, words: Words) -> list[str]:
        answer, member = EpochEnd(words.number("epoch"), words.number("end")), self.member
        mine = member.epoch_end(answer.epoch)
        return member.cut(divergence.truncation_point(answer, mine, member.base.offset), self.now)

    def do_snapshot(self, words: Words) -> list[str]:
        voters = voter_set(words.list("voters"))
        return self.member.load_snapshot(log_end(words.text("end")), voters, self.now)

    def do_committed(self, words: Words) -> list[str]:
        self.member.committed = words.number("to")
        return self.member.check_voters(self.now)

    def do_add(self, words: Words) -> list[str]:
        voter = Voter(replica(words.text("voter")))
        voters, patience = self.member.machine.voters, TIMEOUTS.fetch_ms
        return self._change(
            lambda role: rules.add(voters, voter, role.progress, self.now, patience)
        )

    def do_remove(self, words: Words) -> list[str]:
        key = replica(words.text("voter"))
        return self._change(lambda _: rules.remove(self.member.machine.voters, key))

    def _change(self, decide: Callable[[Leader], VoterSet | rules.VoterChangeRefused]) -> list[str]:
        machine = self.member.machine
        assert isinstance(machine.role, Leader)
        refused = rules.refuse_any(machine.role, rules.DYNAMIC, machine.voters_offset)
        changed = refused if refused is not None else decide(machine.role)
        if isinstance(changed, rules.VoterChangeRefused):
            return [f"refused: {shown(changed.error)}, {changed.message}"]
        return self.member.append([machine.epoch], changed, self.now)


@pytest.mark.parametrize("path", transcripts(HERE), ids=lambda path: path.stem)
def test_story(path: Path, request: pytest.FixtureRequest) -> None:
    check(path, Storyteller().respond, rewrite=request.config.getoption("--rewrite"))
