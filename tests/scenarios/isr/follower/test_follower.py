"""Scenarios of a partition's follower. Every answer ends with its log: [start..end epochs].

follow epoch=4 [start=0] [end=10] [epochs=1@0,3@5]   begin an epoch; by default, keep the log
ask [throttled=500] [flush]                          show the partition's part of the next fetch
respond [error=...] [hw=7] [start=0] [diverging=2@7] [records=3] [of=4] [unusable]
wait ms=50

`records` are records of the epoch `of`; by default, of the leader's current epoch.
"""

from pathlib import Path
from typing import NamedTuple

import pytest
from tests.scenarios.transcript import Words, check, transcripts

from tidelog.model.effects import EpochEnd
from tidelog.model.errors import ErrorCode
from tidelog.replication.isr.follower import (
    AdvanceLogStart,
    AppendFetched,
    BackOff,
    FollowerEffect,
    NextFetch,
    PartitionFollower,
    RestartAt,
    TruncateTo,
)

HERE = Path(__file__).parent
BEGINNING = 1_000_000


class Response(NamedTuple):
    error: ErrorCode
    high_watermark: int
    log_start_offset: int
    diverging_epoch: EpochEnd | None


class ModelLog:
    """A log that has only offsets and the starts of epochs, but no records."""

    def __init__(self) -> None:
        self.log_start_offset = self.log_end_offset = 0
        self.epochs: list[tuple[int, int]] = []

    def epoch_end(self, epoch: int) -> EpochEnd:
        known = [one for one in self.epochs if one[0] <= epoch]
        if not known:
            return EpochEnd(-1, -1)
        later = [start for number, start in self.epochs if number > known[-1][0]]
        return EpochEnd(known[-1][0], later[0] if later else self.log_end_offset)

    def append(self, count: int, epoch: int) -> None:
        if not self.epochs or self.epochs[-1][0] < epoch:
            self.epochs.append((epoch, self.log_end_offset))
        self.log_end_offset += count

    def truncate(self, offset: int) -> None:
        self.log_end_offset = min(self.log_end_offset, offset)
        self.epochs = [one for one in self.epochs if one[1] < self.log_end_offset]

    def restart(self, offset: int) -> None:
        self.log_start_offset = self.log_end_offset = offset
        self.epochs = []

    def __str__(self) -> str:
        epochs = " ".join(f"{epoch}@{start}" for epoch, start in self.epochs)
        return f"[{self.log_start_offset}..{self.log_end_offset} {epochs or 'no epochs'}]"


class Storyteller:
    def __init__(self) -> None:
        self.now = BEGINNING
        self.log = ModelLog()
        self.follower = PartitionFollower(0)

    def respond(self, line: str) -> str:
        words = Words(line)
        shown = getattr(self, f"do_{words.command}")(words)
        words.check_all_read()
        return "\n".join([*shown, str(self.log)])

    def do_follow(self, words: Words) -> list[str]:
        self.follower = PartitionFollower(words.number("epoch"))
        if "end" in words:
            self.log.restart(words.number("start", 0))
            self.log.log_end_offset = words.number("end")
            self.log.epochs = [
                (int(epoch), int(start))
                for epoch, _, start in (one.partition("@") for one in words.list("epochs", ""))
            ]
        return []

    def do_ask(self, words: Words) -> list[str]:
        follower = self.follower
        answer = follower.next_fetch(
            self.log, self.now, words.number("throttled", 0), is_flush_due="flush" in words
        )
        if answer is NextFetch.FETCH:
            follower.is_in_session = True
            last = self.log.epochs[-1][0] if self.log.epochs else -1
            return [f"fetch from {follower.sent_offset}, last epoch {last}, in {follower.epoch}"]
        if answer in (NextFetch.LEAVE_OUT, NextFetch.BACK_OFF):
            follower.leave_session()
        return [answer.name.lower().replace("_", " ")]

    def do_respond(self, words: Words) -> list[str]:
        response = Response(
            ErrorCode[words.text("error", "none")],
            words.number("hw", 0),
            words.number("start", 0),
            diverging(words.text("diverging", "")),
        )
        effect = self.follower.answered(response, self.log, self.now)
        if effect is None:
            words.number("records", 0)
            words.number("of", 0)
            return ["ignored"]
        shown = [self.carry_out(effect)]
        if isinstance(effect, AppendFetched):
            if "unusable" in words:
                return [*shown, self.carry_out(self.follower.failed(self.now))]
            self.log.append(words.number("records", 0), words.number("of", self.follower.epoch))
            then = self.follower.appended(response, self.log)
            shown += [self.carry_out(then)] if then is not None else []
            shown.append("in sync" if self.follower.is_in_sync else "not in sync")
        return shown

    def do_wait(self, words: Words) -> list[str]:
        self.now += words.number("ms")
        return []

    def carry_out(self, effect: FollowerEffect) -> str:
        end = self.log.log_end_offset
        match effect:
            case AppendFetched():
                return "AppendFetched"
            case TruncateTo(offset):
                self.log.truncate(offset)
                backed_off = self.follower.truncated(end, self.log, self.now)
                then = f", {self.carry_out(backed_off)}" if backed_off is not None else ""
                return f"TruncateTo({offset}){then}"
            case RestartAt(offset):
                self.log.restart(offset)
                return f"RestartAt({offset})"
            case AdvanceLogStart(offset):
                self.log.log_start_offset = offset
                return f"AdvanceLogStart({offset})"
            case BackOff(until):
                self.follower.leave_session()
                return f"BackOff for {until - self.now} ms"


def diverging(text: str) -> EpochEnd | None:
    epoch, _, end = text.partition("@")
    return EpochEnd(int(epoch), int(end)) if text else None


@pytest.mark.parametrize("path", transcripts(HERE), ids=lambda path: path.stem)
def test_story(path: Path, request: pytest.FixtureRequest) -> None:
    check(path, Storyteller().respond, rewrite=request.config.getoption("--rewrite"))
