"""One member of the metadata quorum: its state machine, and the state that a node would store."""

from collections.abc import Sequence
from dataclasses import fields
from uuid import UUID

from tidelog.model.effects import EpochEnd
from tidelog.model.ids import NO_EPOCH, NO_OFFSET, Millis
from tidelog.replication.quorum import events as q
from tidelog.replication.quorum import voters as rules
from tidelog.replication.quorum.machine import QuorumMachine
from tidelog.replication.quorum.state import (
    Held,
    LogEnd,
    QuorumState,
    QuorumTimeouts,
    ReplicaKey,
    Voter,
    VoterSet,
)

TIMEOUTS = QuorumTimeouts(election_ms=1000, fetch_ms=2000, election_backoff_max_ms=1000)


class LowestDice:
    """Makes every random wait as short as possible, so that scenarios have exact times."""

    def below(self, bound: int) -> int:
        return 0

    def uuid(self) -> UUID:
        raise AssertionError("a quorum machine draws no ids")


class Member:
    """A member; `log` has the epoch of each record after `base`, the end of the newest snapshot."""

    def __init__(
        self, key: ReplicaKey, voters: VoterSet, saved: QuorumState | None, log: list[int]
    ) -> None:
        self.key = key
        self.saved = saved
        self.base = LogEnd(NO_EPOCH, 0)
        self.log = log
        self.committed = NO_OFFSET
        self.history = rules.VoterHistory(voters)
        self.machine = self._new_machine(None)

    def _new_machine(self, held: Held | None) -> QuorumMachine:
        machine = QuorumMachine(
            self.key,
            self.history.latest,
            self.saved,
            self.end,
            TIMEOUTS,
            LowestDice(),
            has_bootstrap_servers=self.key.directory is not None,
            held=held,
        )
        machine.voters_offset = self.history.latest_offset
        machine.is_retiring = self.history.is_retiring(self.key, self.committed)
        return machine

    @property
    def end(self) -> LogEnd:
        return LogEnd((self.log or [self.base.epoch])[-1], self.base.offset + len(self.log))

    def epoch_end(self, epoch: int) -> EpochEnd:
        """The largest epoch in this log that is not above `epoch`, and its end offset."""
        below = sum(one <= epoch for one in self.log)
        if not below:
            return EpochEnd(NO_EPOCH, NO_OFFSET)
        return EpochEnd(self.log[below - 1], self.base.offset + below)

    def start(self, now: Millis) -> list[str]:
        return self._carry_out(self.machine.start(now), now)

    def restart(self, now: Millis) -> list[str]:
        self.committed = NO_OFFSET
        self.machine = self._new_machine(self.machine.held)
        return self.start(now)

    def step(self, event: q.QuorumEvent, now: Millis) -> list[str]:
        return self._carry_out(self.machine.step(event, now), now)

    def append(self, epochs: list[int], voters: VoterSet | None, now: Millis) -> list[str]:
        """Append synced records; if `voters` is given, the last record changes the voters."""
        self.log += epochs
        if voters is not None:
            self.history.voters_appended(self.end.offset - 1, voters)
        return self._log_changed(now)

    def cut(self, end: int, now: Millis) -> list[str]:
        del self.log[end - self.base.offset :]
        self.history.truncate(end)
        return self._log_changed(now)

    def load_snapshot(self, end: LogEnd, voters: VoterSet, now: Millis) -> list[str]:
        self.base, self.log = end, []
        self.history.restart(end.offset, rules.VoterMembership(rules.DYNAMIC, voters))
        return self._log_changed(now)

    def _log_changed(self, now: Millis) -> list[str]:
        return [*self.check_voters(now), *self.step(q.LogGrew(self.end), now)]

    def check_voters(self, now: Millis) -> list[str]:
        """Report the voters to the state machine, if they have changed."""
        machine, history = self.machine, self.history
        is_retiring = history.is_retiring(self.key, self.committed)
        new = (history.latest, history.latest_offset, is_retiring)
        if (machine.voters, machine.voters_offset, machine.is_retiring) == new:
            return []
        return self.step(q.VotersChanged(*new), now)

    def _carry_out(self, effects: Sequence[q.QuorumEffect], now: Millis) -> list[str]:
        lines: list[str] = []
        for effect in effects:
            lines.append(shown_effect(effect))
            match effect:
                case q.SaveQuorumState():
                    self.saved = effect.state
                case q.Commit():
                    self.committed = effect.to
                case q.TakeLeadership():
                    self.machine.epoch_started(self.end.offset)
                    lines += self.append([effect.epoch], None, now)
        return lines

    def state(self) -> str:
        role, parts = self.machine.role, [f"epoch={self.machine.epoch}", f"log={shown(self.end)}"]
        if (watermark := getattr(role, "high_watermark", None)) is not None:
            parts.append(f"hw={watermark}")
        elif self.machine.leader >= 0:
            parts.append(f"leader={self.machine.leader}")
        if self.history.latest_offset >= 0:
            keys = tuple(voter.key for voter in self.machine.voters.voters.values())
            parts.append(f"voters={shown(keys)}")
        return f"[{shown(self.key)} {type(role).__name__} {' '.join(parts)}]"


def replica(text: str) -> ReplicaKey:
    """Parse a replica: `2`, or `2/b` for node 2 on disk b."""
    id_, _, disk = text.partition("/")
    return ReplicaKey(int(id_), UUID(int=0x100 + ord(disk)) if disk else None)


def voter_set(keys: Sequence[str]) -> VoterSet:
    return VoterSet({replica(key).id: Voter(replica(key)) for key in keys})


def shown(value: object) -> str:
    match value:
        case LogEnd():
            return f"{value.epoch}@{value.offset}"
        case ReplicaKey():
            disk = "" if value.directory is None else f"/{chr(value.directory.int - 0x100)}"
            return f"{value.id}{disk}"
        case tuple():
            return ",".join(map(shown, value))
        case _:
            return getattr(value, "name", str(value))


def shown_effect(effect: q.QuorumEffect) -> str:
    """The name and the fields of an effect, without unset fields and the request's number."""
    source = effect.state if isinstance(effect, q.SaveQuorumState) else effect
    values = {field.name: getattr(source, field.name) for field in fields(source)}
    values.pop("ticket", None)
    parts = [
        name if value is True else f"{name}={shown(value)}"
        for name, value in values.items()
        if value is not None and value is not False
    ]
    return f"{type(effect).__name__}({', '.join(parts)})"
