"""Scenarios of the controller's decisions. An answer shows the response's error and the changes.

The controller decides each command on the image that the earlier commands made. `t-0` is partition
0 of topic t, to which most commands apply. `leader=1/4` is broker 1 in leader epoch 4, and `at=7`
is the partition epoch. Empty fields are left out.

cluster brokers=1,2,3 [elr=0]                     these brokers are registered and unfenced
register broker=1 [run=b] [clean] [new_disk]      `clean`: its last process shut down cleanly
register broker=1 kafka                           a broker that knows the ISR rule only
heartbeat broker=1 [epoch=1000] [offset=1000] [fence] [shutdown] [log_end=5/100@7]
silent broker=1                                   the broker's session expires
unregister broker=1
create topic=t replicas=1-2-3 [min=2] [unclean=true] [rule=quorum]
create topic=t partitions=3 factor=2
delete topic=t | config topic=t min=1 | config topic=t unclean=true
isr from=1 isr=1,2 [leader_epoch=4] [partition_epoch=7] [broker_epoch=1000] [recovering]
elect kind=preferred | elect kind=unclean
reassign replicas=4,5 | reassign cancel
another_controller                                it has received no reports yet
chore name=balance_leaders | chore name=elect_uncleanly        periodic tasks of the controller
"""

from collections.abc import Iterator, Sequence
from dataclasses import fields, is_dataclass, replace
from pathlib import Path
from typing import Any

import pytest
from tests.scenarios.controller.requests import REQUESTS
from tests.scenarios.transcript import Words, check, transcripts
from tests.unit.controller.support import CountingDice, cluster, context

from tidelog.controller.decide import elections
from tidelog.controller.decide.decide import DecideContext, decide
from tidelog.controller.decide.leader_balance import balance_leaders
from tidelog.controller.image.apply import apply_all
from tidelog.controller.image.image import BrokerImage, ClusterImage, PartitionImage
from tidelog.controller.liveness import Liveness
from tidelog.controller.log_ends import LogEndReports
from tidelog.model.errors import ErrorCode

HERE = Path(__file__).parent
NOW = 10_000
HEARTBEAT_ANSWER = ("is_caught_up", "is_fenced", "should_shut_down")


class Storyteller:
    def __init__(self) -> None:
        self.image = cluster(())
        self.sessions = Liveness(session_timeout_ms=9_000)
        self.dice = CountingDice()
        self.log_ends = LogEndReports()

    def respond(self, line: str) -> str:
        words, before = Words(line), self.image
        if words.command in REQUESTS:
            lines = self.ask(words)
        else:
            lines = getattr(self, f"do_{words.command}")(words)
        words.check_all_read()
        return "\n".join([*lines, *changes(before, self.image)] or ["no change"])

    def ask(self, words: Words) -> list[str]:
        request = REQUESTS[words.command](self.image, words)
        if words.command == "heartbeat":
            self.sessions.record_heartbeat(request.broker_id, NOW, request.current_metadata_offset)
            self.log_ends.received(request.broker_id, request.broker_epoch, request.log_ends)
        decision = decide(self.image, request, self.context())
        self.apply(decision.records)
        return list(outcomes(decision.response))

    def context(self) -> DecideContext:
        made = context(self.image, now=NOW, sessions=self.sessions)
        return replace(made, dice=self.dice, log_ends=self.log_ends)

    def apply(self, records: Sequence[Any]) -> None:
        last = self.image.offset + len(records)
        self.image = apply_all(self.image, list(records), last, self.image.epoch)

    def do_cluster(self, words: Words) -> list[str]:
        self.image = cluster((), elr=words.number("elr", 1) == 1)
        brokers = words.list("brokers")
        for command in [f"{c} broker={id_}" for id_ in brokers for c in ("register", "heartbeat")]:
            self.ask(Words(command))
        return []

    def do_silent(self, words: Words) -> list[str]:
        broker = words.number("broker")
        self.sessions.forget(broker)
        self.apply(elections.fence_expired(self.image, [broker], self.context()))
        return []

    def do_another_controller(self, words: Words) -> list[str]:
        self.log_ends = LogEndReports()
        return []

    def do_chore(self, words: Words) -> list[str]:
        chores = {"balance_leaders": balance_leaders, "elect_uncleanly": elections.elect_uncleanly}
        self.apply(chores[words.text("name")](self.image, self.context()))
        return []


def outcomes(response: Any) -> Iterator[str]:
    """Every error of a response, or "ok"; for a heartbeat, with the flags of the response."""
    found = [f"{code.name}{': ' if text else ''}{text or ''}" for code, text in errors(response)]
    flags = [name for name in HEARTBEAT_ANSWER if getattr(response, name, False)]
    yield from [one for one in found if one != ErrorCode.none.name] or [" ".join(["ok", *flags])]


def errors(response: Any) -> Iterator[tuple[ErrorCode, str | None]]:
    if isinstance(response, tuple):
        for one in response:
            yield from errors(one)
    elif is_dataclass(response):
        if isinstance(code := getattr(response, "error_code", None), ErrorCode):
            yield code, getattr(response, "error_message", None)
        for field in fields(response):
            yield from errors(getattr(response, field.name))


def changes(before: ClusterImage, after: ClusterImage) -> Iterator[str]:
    for id_ in sorted({*before.brokers, *after.brokers}):
        if before.brokers.get(id_) != after.brokers.get(id_):
            yield shown_broker(id_, after.brokers.get(id_))
    for name in sorted({*before.topics, *after.topics}):
        old, new = before.topics.get(name), after.topics.get(name)
        if new is None:
            yield f"{name} deleted"
            continue
        if old is None:
            yield f"{name} created id={new.topic_id.int}"
        for index, partition in new.partitions.items():
            if old is None or old.partitions.get(index) != partition:
                yield f"{name}-{index} {shown_partition(partition)}"


def shown_broker(id_: int, broker: BrokerImage | None) -> str:
    if broker is None:
        return f"broker {id_} unregistered"
    state = "fenced" if broker.fenced else "unfenced"
    stopping = " in_controlled_shutdown" if broker.in_controlled_shutdown else ""
    return f"broker {id_} epoch={broker.epoch} {state}{stopping}"


def shown_partition(partition: PartitionImage) -> str:
    lists = {
        "replicas": partition.replicas,
        "adding": partition.adding,
        "removing": partition.removing,
        "isr": partition.isr,
        "elr": partition.elr,
        "last_known_elr": partition.last_known_elr,
    }
    parts = [f"{name}={','.join(map(str, ids))}" for name, ids in lists.items() if ids]
    parts.append(f"leader={partition.leader}/{partition.leader_epoch}")
    if partition.leader_recovery_state:
        parts.append("recovering")
    return f"{' '.join(parts)} at={partition.partition_epoch}"


@pytest.mark.parametrize("path", transcripts(HERE), ids=lambda path: path.stem)
def test_story(path: Path, request: pytest.FixtureRequest) -> None:
    check(path, Storyteller().respond, rewrite=request.config.getoption("--rewrite"))
