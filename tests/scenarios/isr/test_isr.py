"""Scenarios of one partition's leader. Every answer ends with [high watermark, in-sync set].

lead me=1 epoch=4 isr=1,2,3 min=2 [replicas=1,2,3] [start=0] [end=0] [hw=0] [lag=1000] [rule=isr]
produce end=5
fetch replica=2 offset=5 [broker_epoch=-1] [ineligible]
agree isr=1,2 epoch=1 [replicas=1,2,3] [min=2]       the controller's decision
refuse epoch=0 | lose epoch=0                        the controller refused | its answer was lost
check [after=500]                                    the timer isr-expiration
wait ms=500

In `lead`, `epoch` is the leader epoch. In `agree`, `refuse` and `lose`, it is the partition epoch.
"""

from pathlib import Path

import pytest
from tests.scenarios.transcript import check, transcripts

from tidelog.replication.isr.leader import (
    AdvanceHighWatermark,
    FollowerFetched,
    IsrAgreed,
    IsrRefused,
    IsrUnanswered,
    LagChecked,
    LeaderEffect,
    LeaderEvent,
    PartitionLeader,
    Produced,
    ProposeIsr,
)
from tidelog.replication.rules import RULES

HERE = Path(__file__).parent
BEGINNING = 1_000_000


class Storyteller:
    def __init__(self) -> None:
        self.now = BEGINNING
        self.lag = 1_000
        self.leader: PartitionLeader | None = None

    def respond(self, line: str) -> str:
        command, *words = line.split()
        flags = {word for word in words if "=" not in word}
        values = dict(word.split("=", 1) for word in words if "=" in word)
        shown = getattr(self, f"do_{command}")(values, flags)
        assert self.leader is not None
        isr = ",".join(map(str, sorted(self.leader.isr)))
        return "\n".join([*shown, f"[hw={self.leader.high_watermark} isr={isr}]"])

    def do_lead(self, values: dict[str, str], flags: set[str]) -> list[str]:
        self.lag = int(values.get("lag", self.lag))
        start = int(values.get("start", 0))
        self.leader = PartitionLeader(
            int(values["me"]),
            int(values["epoch"]),
            epoch_start=start,
            end=int(values.get("end", start)),
            high_watermark=int(values.get("hw", start)),
            agreed=IsrAgreed(
                members(values["isr"]),
                members(values.get("replicas", values["isr"])),
                0,
                int(values["min"]),
            ),
            now=self.now,
            rule=RULES[values.get("rule", "isr")],
        )
        return []

    def do_produce(self, values: dict[str, str], flags: set[str]) -> list[str]:
        return self.step(Produced(int(values["end"])))

    def do_fetch(self, values: dict[str, str], flags: set[str]) -> list[str]:
        return self.step(
            FollowerFetched(
                int(values["replica"]),
                int(values["offset"]),
                int(values.get("broker_epoch", -1)),
                "ineligible" not in flags,
            )
        )

    def do_agree(self, values: dict[str, str], flags: set[str]) -> list[str]:
        assert self.leader is not None
        replicas = members(values["replicas"]) if "replicas" in values else self.leader.replicas
        minimum = int(values.get("min", self.leader.minimum))
        return self.step(IsrAgreed(members(values["isr"]), replicas, int(values["epoch"]), minimum))

    def do_refuse(self, values: dict[str, str], flags: set[str]) -> list[str]:
        return self.step(IsrRefused(int(values["epoch"])))

    def do_lose(self, values: dict[str, str], flags: set[str]) -> list[str]:
        return self.step(IsrUnanswered(int(values["epoch"])))

    def do_check(self, values: dict[str, str], flags: set[str]) -> list[str]:
        self.now += int(values.get("after", 0))
        return self.step(LagChecked(self.lag))

    def do_wait(self, values: dict[str, str], flags: set[str]) -> list[str]:
        self.now += int(values["ms"])
        return []

    def step(self, event: LeaderEvent) -> list[str]:
        assert self.leader is not None
        return [shown(effect) for effect in self.leader.step(event, self.now)]


def members(text: str) -> frozenset[int]:
    return frozenset(map(int, text.split(",")))


def shown(effect: LeaderEffect) -> str:
    match effect:
        case AdvanceHighWatermark():
            return f"AdvanceHighWatermark(to={effect.to})"
        case ProposeIsr():
            isr = " ".join(f"{member.replica}@{member.broker_epoch}" for member in effect.isr)
            left = "".join(
                f", {one.broker} is {one.reason} at {one.end_offset} for {one.lag_ms} ms"
                for one in effect.left
            )
            return f"ProposeIsr({isr}, partition_epoch={effect.partition_epoch}{left})"


@pytest.mark.parametrize("path", transcripts(HERE), ids=lambda path: path.stem)
def test_story(path: Path, request: pytest.FixtureRequest) -> None:
    check(path, Storyteller().respond, rewrite=request.config.getoption("--rewrite"))
