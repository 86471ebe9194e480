"""Rules that a coordinator must obey with random members, writes and failovers.

- Every ticket is answered exactly once.
- One generation has one assignment: all members of a generation get parts of the same assignment,
  whichever coordinator sends it. Only members that joined the generation get a part.
- The groups and offsets in memory always equal those in the log (F66).
- While no write fails, a new coordinator has every stable or empty group in the same state.
"""

from dataclasses import dataclass
from typing import Any

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    invariant,
    precondition,
    rule,
)
from tests.unit.coordination.group_client import CoordinatorUnderTest

from tidelog.config.group_settings import GroupSettings
from tidelog.coordination.runtime.decision import RecordOrigin
from tidelog.model.errors import ErrorCode

SETTINGS = GroupSettings(
    max_size=4, offsets_retention_ms=400_000, offsets_retention_check_interval_ms=60_000
)
GROUPS = ["red", "blue"]
PROTOCOLS = [
    [("range", b"1")],
    [("range", b"2"), ("sticky", b"2")],
    [("sticky", b"3"), ("range", b"3")],
]
REFUSALS = [ErrorCode.not_enough_replicas, ErrorCode.none]

clients = st.integers(0, 5)


@dataclass
class Client:
    """A random consumer: it forgets its state, repeats requests and sends wrong values."""

    group: str
    instance: str | None
    member: str = ""
    generation: int = -1
    protocol: str | None = None
    peers: tuple[str, ...] = ()
    """If this client is the group's leader: the members to which it assigns partitions."""


class Coordinator(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.coordinator = CoordinatorUnderTest(SETTINGS, writes_succeed=False)
        self.clients = [
            Client(GROUPS[number % 2], f"static-{number}" if number >= 4 else None)
            for number in range(6)
        ]
        self.asked: dict[int, tuple[str, Client]] = {}
        self.requests = 0
        self.assignments: dict[tuple[str, int, int], bytes] = {}
        self.failed = False

    # -- Requests of members -----------------------------------------------------------------------

    def ask(self, kind: str, client: Client, ticket: int) -> None:
        self.asked[ticket] = (kind, client)
        self.read_answers()

    def read_answers(self) -> None:
        for ticket in [ticket for ticket in self.asked if ticket in self.coordinator.answers]:
            kind, client = self.asked.pop(ticket)
            answer = self.coordinator.answers[ticket]
            if kind == "join":
                self.joined(client, answer)
            elif kind == "sync" and answer.error_code is ErrorCode.none:
                self.synced(client.group, answer)

    def joined(self, client: Client, answer: Any) -> None:
        if answer.error_code is ErrorCode.none:
            client.member, client.generation = answer.member_id, answer.generation_id
            client.protocol = answer.protocol_name
            client.peers = tuple(member.member_id for member in answer.members)
            assert not client.peers or answer.leader == client.member
        elif answer.error_code is ErrorCode.member_id_required:
            client.member = answer.member_id
        elif answer.error_code in (ErrorCode.unknown_member_id, ErrorCode.fenced_instance_id):
            client.member = ""

    def synced(self, group: str, answer: Any) -> None:
        """Check that all assignments of one generation come from the same leader's request."""
        if answer.assignment:
            generation, _, request = answer.assignment.partition(b":")
            key = (group, self.incarnation(group), int(generation))
            whole = self.assignments.setdefault(key, request)
            assert request == whole, "one generation, two assignments"

    def incarnation(self, group: str) -> int:
        """How often the group was created; its generation numbers restart each time."""
        return sum(
            value is None or value.generation == 0
            for value in self.coordinator.written_groups(group)
        )

    @rule(number=clients, protocols=st.sampled_from(PROTOCOLS), fresh=st.booleans())
    def join(self, number: int, protocols: list[tuple[str, bytes]], fresh: bool) -> None:
        client = self.clients[number]
        if fresh and client.instance is not None:
            client.member = ""
        ticket = self.coordinator.join(
            client.member,
            group=client.group,
            instance=client.instance,
            protocols=protocols,
            version=9 if number % 3 else 4,
        )
        self.ask("join", client, ticket)

    @rule(number=clients, behind=st.sampled_from([0, 0, 0, 1]))
    def sync(self, number: int, behind: int) -> None:
        client = self.clients[number]
        self.requests += 1
        part = f"{client.generation - behind}:{self.requests}".encode()
        ticket = self.coordinator.sync(
            client.member,
            client.generation - behind,
            dict.fromkeys(client.peers, part),
            group=client.group,
            instance=client.instance,
            protocol_name=client.protocol,
        )
        self.ask("sync", client, ticket)

    @rule(group=st.sampled_from(GROUPS), rounds=st.integers(1, 4))
    def rally(self, group: str, rounds: int) -> None:
        """Let the clients of a group behave correctly for some rounds, while writes succeed."""
        self.coordinator.refuse_writes(ErrorCode.none)
        self.coordinator.write_all()
        self.coordinator.writes_succeed = True
        for _ in range(rounds):
            for number, client in enumerate(self.clients):
                parked = any(who is client for _, who in self.asked.values())
                if client.group == group and not parked:
                    self.step(number, client)
            self.coordinator.advance(3_000)
            self.read_answers()
        self.coordinator.writes_succeed = False

    def step(self, number: int, client: Client) -> None:
        error = self.coordinator.heartbeat(
            client.member, client.generation, group=client.group, instance=client.instance
        )
        if error is ErrorCode.none:
            self.sync(number, 0)
        else:
            if error is ErrorCode.unknown_member_id and client.generation >= 0:
                client.member, client.generation = "", -1
            self.join(number, PROTOCOLS[1], False)

    @rule(number=clients)
    def heartbeat(self, number: int) -> None:
        client = self.clients[number]
        self.coordinator.heartbeat(
            client.member, client.generation, group=client.group, instance=client.instance
        )

    @rule(number=clients)
    def leave(self, number: int) -> None:
        client = self.clients[number]
        ticket = self.coordinator.leave((client.member, client.instance), group=client.group)
        self.ask("leave", client, ticket)

    # -- Requests about offsets, and of administrators ---------------------------------------------

    @rule(number=clients, partition=st.integers(0, 2), behind=st.sampled_from([0, 0, 1]))
    def commit(self, number: int, partition: int, behind: int) -> None:
        client = self.clients[number]
        self.requests += 1
        ticket = self.coordinator.commit(
            {("topic", partition): self.requests, ("other", partition): self.requests},
            member=client.member,
            generation=client.generation - behind,
            group=client.group,
            instance=client.instance,
        )
        self.ask("commit", client, ticket)

    @rule(group=st.sampled_from([*GROUPS, "simple"]), partition=st.integers(0, 2))
    def commit_alone(self, group: str, partition: int) -> None:
        self.requests += 1
        ticket = self.coordinator.commit({("topic", partition): self.requests}, group=group)
        self.ask("commit", self.clients[0], ticket)

    @rule(group=st.sampled_from(GROUPS), partition=st.integers(0, 2))
    def fetch_stable(self, group: str, partition: int) -> None:
        ticket = self.coordinator.fetch(("topic", partition), group=group, require_stable=True)
        self.ask("fetch", self.clients[0], ticket)

    @rule(group=st.sampled_from([*GROUPS, "simple"]))
    def delete_group(self, group: str) -> None:
        self.ask("delete", self.clients[0], self.coordinator.delete_groups(group))

    @rule(group=st.sampled_from([*GROUPS, "simple"]), partition=st.integers(0, 2))
    def delete_offsets(self, group: str, partition: int) -> None:
        ticket = self.coordinator.delete_offsets(("topic", partition), group=group)
        self.ask("delete", self.clients[0], ticket)

    # -- Writes to the log, and time ---------------------------------------------------------------

    @rule()
    @precondition(lambda self: self.coordinator.unwritten)
    def write(self) -> None:
        self.coordinator.commit_next()
        self.read_answers()

    @rule()
    def write_everything(self) -> None:
        self.coordinator.write_all()
        self.read_answers()

    @rule(error=st.sampled_from(REFUSALS))
    def refuse_writes(self, error: ErrorCode) -> None:
        """Refuse every append, or, half of the time, accept them again."""
        self.coordinator.refuse_writes(error)

    @rule()
    @precondition(lambda self: self.coordinator.unwritten)
    def fail_to_commit(self) -> None:
        """The records stay in the log and are committed later."""
        self.failed = True
        self.coordinator.fail_to_commit()
        self.read_answers()

    @rule(milliseconds=st.sampled_from([1, 1_000, 3_000, 4_000]))
    def wait(self, milliseconds: int) -> None:
        self.failed |= bool(self.coordinator.unwritten)  # waiting writes may time out
        self.coordinator.advance(milliseconds)
        self.read_answers()

    @rule(milliseconds=st.sampled_from([10_000, 60_000, 400_000]))
    def wait_long(self, milliseconds: int) -> None:
        self.coordinator.refuse_writes(ErrorCode.none)
        self.coordinator.write_all()
        self.coordinator.writes_succeed = True
        self.coordinator.advance(milliseconds)
        self.coordinator.writes_succeed = False
        self.read_answers()

    @rule()
    def fail_over(self) -> None:
        """Let a new coordinator load the written log."""
        self.coordinator.resign()
        self.read_answers()
        assert not self.asked, "tickets left without an answer"
        self.coordinator = self.coordinator.successor()
        self.coordinator.writes_succeed = False
        self.failed = False

    def teardown(self) -> None:
        self.fail_over()

    # -- Checks of the rules -----------------------------------------------------------------------

    @invariant()
    def the_state_is_what_the_log_holds(self) -> None:
        """Also the records that are not committed, because decisions are based on them."""
        other = CoordinatorUnderTest(SETTINGS, predecessor=self.coordinator)
        for _, records in self.coordinator.unwritten:
            for record in map(other.machine.decode, *zip(*records, strict=True)):
                assert record is not None
                other.machine.replay(record, RecordOrigin(0))
        for group in [*GROUPS, "simple"]:
            mine = dict(self.coordinator.state_of_shard.offsets.of_group(group))
            assert mine == dict(other.state_of_shard.offsets.of_group(group))
        assert sorted(self.coordinator.state_of_shard.groups) == sorted(other.state_of_shard.groups)

    @invariant()
    def settled_groups_are_found_again(self) -> None:
        if self.failed or self.coordinator.unwritten:
            return
        after = self.coordinator.successor()
        assert sorted(after.list_groups()) == sorted(self.coordinator.list_groups())
        for group in self.coordinator.list_groups(states=["Stable", "Empty"]):
            assert after.describe(group) == self.coordinator.describe(group)


Coordinator.TestCase.settings = settings(max_examples=100, stateful_step_count=40, deadline=None)
TestCoordinator = Coordinator.TestCase
