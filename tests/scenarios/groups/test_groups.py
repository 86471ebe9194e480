"""Scenarios of consumer groups. `B-2` is the second member id, which was given to client B.

join A [static] [protocols=range,sticky] [fresh]     `fresh`: A does not send its member id
sync A [A=x B=y]                                     if A leads, A sends this assignment
heartbeat A | leave A [B ...]
commit A t-0=5 [generation=1] | commit - t-0=5       `-`: a consumer that is no member
offsets | delete | wait 3000 | fail over
writes held | write | write not_enough_replicas      writes are acknowledged at once unless held
"""

import re
from pathlib import Path
from typing import Any

import pytest
from tests.scenarios.transcript import check, transcripts
from tests.unit.coordination.group_client import (
    GROUP,
    CoordinatorUnderTest,
    beating,
    joining,
    syncing,
)

from tidelog.coordination.records import OffsetCommitKey, decode_key, decode_value
from tidelog.coordination.runtime.decision import ClientInfo
from tidelog.model.errors import ErrorCode

HERE = Path(__file__).parent
OFFSET = re.compile(r"(.+)-(\d+)=(\d+)")


class Storyteller:
    def __init__(self) -> None:
        self.coordinator = CoordinatorUnderTest()
        self.ids: dict[str, str] = {}
        self.generations: dict[str, int] = {}
        self.parked: dict[int, tuple[str, str]] = {}
        self.shown_records = 0
        self.shown: list[str] = []

    def respond(self, line: str) -> str:
        command, *words = line.split()
        flags = {word for word in words[1:] if "=" not in word}
        values = dict(word.split("=", 1) for word in words[1:] if "=" in word)
        getattr(self, f"do_{command}")(words, flags, values)
        shown, self.shown = [*self.shown, *self.log_lines(), *self.answer_lines()], []
        return "\n".join([*shown, f"[{self.coordinator.state()}]"])

    # -- Commands of a scenario --------------------------------------------------------------------

    def do_join(self, words: list[str], flags: set[str], values: dict[str, str]) -> None:
        name = words[0]
        if "fresh" in flags:
            self.ids.pop(name, None)
        protocols = values.get("protocols", "range").split(",")
        request = joining(
            self.ids.get(name, ""),
            instance=name.lower() if "static" in flags else None,
            protocols=[(protocol, name.encode()) for protocol in protocols],
        )
        self.ask(name, "join", request)

    def do_sync(self, words: list[str], flags: set[str], values: dict[str, str]) -> None:
        name = words[0]
        given = {self.ids[to]: what.encode() for to, what in values.items()}
        self.ask(name, "sync", syncing(self.ids[name], self.generations[name], given))

    def do_heartbeat(self, words: list[str], flags: set[str], values: dict[str, str]) -> None:
        name = words[0]
        request = beating(self.ids[name], self.generations[name])
        self.ask(name, "heartbeat", request)

    def do_leave(self, words: list[str], flags: set[str], values: dict[str, str]) -> None:
        self.parked[self.coordinator.leave(*(self.ids[name] for name in words))] = (
            words[0],
            "leave",
        )

    def do_commit(self, words: list[str], flags: set[str], values: dict[str, str]) -> None:
        name, offset = words[0], OFFSET.fullmatch(words[1])
        assert offset is not None
        topic, partition, value = offset.groups()
        generation = int(values.get("generation", self.generations.get(name, -1)))
        ticket = self.coordinator.commit(
            {(topic, int(partition)): int(value)},
            member=self.ids.get(name, ""),
            generation=generation,
        )
        self.parked[ticket] = (name, "commit")

    def do_offsets(self, words: list[str], flags: set[str], values: dict[str, str]) -> None:
        self.parked[self.coordinator.fetch()] = ("-", "offsets")

    def do_delete(self, words: list[str], flags: set[str], values: dict[str, str]) -> None:
        self.parked[self.coordinator.delete_groups(GROUP)] = ("-", "delete")

    def do_wait(self, words: list[str], flags: set[str], values: dict[str, str]) -> None:
        self.coordinator.advance(int(words[0]))

    def do_writes(self, words: list[str], flags: set[str], values: dict[str, str]) -> None:
        self.coordinator.writes_succeed = words != ["held"]

    def do_write(self, words: list[str], flags: set[str], values: dict[str, str]) -> None:
        if not words:
            self.coordinator.commit_next()
            return
        # The records stay in the log, and later records are committed together with them. A
        # transcript shows only writes that succeed, so it leaves them out.
        self.coordinator.unwritten.pop()
        self.coordinator.fail_to_commit(ErrorCode[words[0]])

    def do_fail(self, words: list[str], flags: set[str], values: dict[str, str]) -> None:
        assert words == ["over"]
        self.coordinator.resign()
        self.shown = self.answer_lines()
        self.coordinator = self.coordinator.successor()

    def ask(self, name: str, kind: str, request: Any) -> None:
        ticket = self.coordinator.ask(request, client=ClientInfo(name, "127.0.0.1"))
        self.parked[ticket] = (name, kind)

    # -- Answers to commands -----------------------------------------------------------------------

    def log_lines(self) -> list[str]:
        new = self.coordinator.log[self.shown_records :]
        self.shown_records = len(self.coordinator.log)
        return [f"log: {self.record(key, value)}" for key, value in new]

    def record(self, key_bytes: bytes, value_bytes: bytes | None) -> str:
        key = decode_key(key_bytes)
        assert key is not None
        value: Any = None if value_bytes is None else decode_value(key, value_bytes)
        if isinstance(key, OffsetCommitKey):
            shown = f"offset {key.topic}-{key.partition}"
            return f"{shown} removed" if value is None else f"{shown}={value.offset}"
        if value is None:
            return "group removed"
        parts = [f"{short(m.member_id)}={m.assignment.decode()}" for m in value.members]
        return " ".join([f"group generation={value.generation}", *parts])

    def answer_lines(self) -> list[str]:
        lines = []
        for ticket in [ticket for ticket in self.parked if ticket in self.coordinator.answers]:
            name, kind = self.parked.pop(ticket)
            shown = getattr(self, f"tell_{kind}")(name, self.coordinator.answers[ticket])
            lines.append(f"{name} {kind}: {shown}")
        return lines

    def tell_join(self, name: str, answer: Any) -> str:
        if answer.error_code is not ErrorCode.none:
            if answer.error_code is ErrorCode.member_id_required:
                self.ids[name] = answer.member_id
                return f"{error(answer)} id={short(answer.member_id)}"
            return error(answer)
        self.ids[name], self.generations[name] = answer.member_id, answer.generation_id
        shown = [
            f"generation={answer.generation_id} id={short(answer.member_id)}",
            f"leader={short(answer.leader)} protocol={answer.protocol_name}",
        ]
        if answer.members:
            shown.append("members=" + ",".join(short(m.member_id) for m in answer.members))
        if answer.skip_assignment:
            shown.append("skip assignment")
        return " ".join(shown)

    def tell_sync(self, name: str, answer: Any) -> str:
        if answer.error_code is not ErrorCode.none:
            return error(answer)
        return f"assigned {answer.assignment.decode() or 'nothing'}"

    def tell_heartbeat(self, name: str, answer: Any) -> str:
        return error(answer)

    def tell_leave(self, name: str, answer: Any) -> str:
        if answer.error_code is not ErrorCode.none:
            return error(answer)
        return ", ".join(f"{short(m.member_id)} {error(m)}" for m in answer.members)

    def tell_commit(self, name: str, answer: Any) -> str:
        return error(answer.topics[0].partitions[0])

    def tell_offsets(self, name: str, answer: Any) -> str:
        found = [
            f"{topic.name}-{partition.partition_index}={partition.committed_offset}"
            for topic in answer.groups[0].topics
            for partition in topic.partitions
        ]
        return " ".join(found) or "none"

    def tell_delete(self, name: str, answer: Any) -> str:
        return error(answer.results[0])


def short(member_id: str) -> str:
    """The short form of a member id, such as `B-2`."""
    name, _, number = member_id.partition("-")
    return f"{name}-{int(number.replace('-', ''), 16)}" if number else "-"


def error(answer: Any) -> str:
    name: str = answer.error_code.name
    return "ok" if answer.error_code is ErrorCode.none else name.upper()


@pytest.mark.parametrize("path", transcripts(HERE), ids=lambda path: path.stem)
def test_story(path: Path, request: pytest.FixtureRequest) -> None:
    check(path, Storyteller().respond, rewrite=request.config.getoption("--rewrite"))
