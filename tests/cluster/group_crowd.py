"""Many members of one classic group, each on its own connection, in one event loop.

The members implement the group protocol themselves, because two hundred real consumers would
leave a small machine no capacity for the brokers under test.
"""

import asyncio
import struct
import time
from collections.abc import Awaitable, Callable, Sequence
from datetime import timedelta
from threading import Thread
from typing import Any

from kio.schema.find_coordinator.v4.request import FindCoordinatorRequest
from kio.schema.heartbeat.v4.request import HeartbeatRequest
from kio.schema.join_group.v9.request import JoinGroupRequest, JoinGroupRequestProtocol
from kio.schema.leave_group.v5.request import LeaveGroupRequest, MemberIdentity
from kio.schema.sync_group.v5.request import SyncGroupRequest, SyncGroupRequestAssignment

from tidelog.model.errors import ErrorCode
from tidelog.protocol.messages.messages import decode_response, encode_request

SESSION = timedelta(seconds=10)
REBALANCE = timedelta(seconds=40)
HEARTBEAT_SECONDS = 1.0
ANSWER_SECONDS = 60.0
RETRY_SECONDS = 0.1

Address = tuple[str, int]


class Lost(Exception):
    """The coordinator has moved or does not answer, so the member looks it up again."""


class Member:
    """Joins the group, takes its assignment, and sends heartbeats until `leaving` is set."""

    def __init__(self, group: str, brokers: Sequence[Address], number: int) -> None:
        self.group = group
        self.number = number
        self.member_id = ""
        self.generation = -1
        """The generation of the member's assignment; -1 if it has no assignment."""
        self.assignment = b""
        self.confirmed_at = 0.0
        """When the coordinator last confirmed the member's generation."""
        self.errors: dict[ErrorCode, int] = {}
        self.leaving = asyncio.Event()
        self.has_left = False
        self._brokers = brokers
        self._turn = number
        self._ids = 0
        self._reader: asyncio.StreamReader | None = None
        self._writer: asyncio.StreamWriter | None = None

    async def run(self) -> None:
        while not self.has_left:
            try:
                await self._find_coordinator()
                await self._live()
            except (Lost, OSError, EOFError, TimeoutError):
                self.generation = -1
                self._hang_up()
                if self.leaving.is_set() and not self.member_id:
                    self.has_left = True
                await asyncio.sleep(RETRY_SECONDS)
        self._hang_up()

    async def _live(self) -> None:
        while not self.leaving.is_set():
            await self._join()
            if self.generation >= 0:
                await self._beat()
        await self._leave()

    async def _join(self) -> None:
        self.generation = -1
        joined = await self._ask(
            JoinGroupRequest(
                group_id=self.group,
                session_timeout=SESSION,
                rebalance_timeout=REBALANCE,
                member_id=self.member_id,
                group_instance_id=None,
                protocol_type="consumer",
                protocols=(JoinGroupRequestProtocol(name="range", metadata=b"\0\0\0\0\0\0"),),
            )
        )
        if joined.error_code is ErrorCode.member_id_required:
            self.member_id = joined.member_id
            return
        if not self._is_good(joined.error_code):
            return
        self.member_id = joined.member_id
        members = [member.member_id for member in joined.members]
        assigned = tuple(
            SyncGroupRequestAssignment(member_id=one, assignment=b"%d" % number)
            for number, one in enumerate(members)
        )
        synced = await self._ask(
            SyncGroupRequest(
                group_id=self.group,
                generation_id=joined.generation_id,
                member_id=self.member_id,
                group_instance_id=None,
                protocol_type="consumer",
                protocol_name="range",
                assignments=assigned if joined.leader == self.member_id else (),
            )
        )
        if self._is_good(synced.error_code):
            self.assignment = synced.assignment
            self.generation = joined.generation_id
            self.confirmed_at = time.monotonic()

    async def _beat(self) -> None:
        while not self.leaving.is_set():
            try:
                await asyncio.wait_for(self.leaving.wait(), HEARTBEAT_SECONDS)
            except TimeoutError:
                beaten = await self._ask(
                    HeartbeatRequest(
                        group_id=self.group,
                        generation_id=self.generation,
                        member_id=self.member_id,
                        group_instance_id=None,
                    )
                )
                if not self._is_good(beaten.error_code):
                    return
                self.confirmed_at = time.monotonic()

    async def _leave(self) -> None:
        self.generation = -1
        if self.member_id:
            member = MemberIdentity(member_id=self.member_id, group_instance_id=None)
            left = await self._ask(LeaveGroupRequest(group_id=self.group, members=(member,)))
            self._is_good(left.error_code)
        self.has_left = True

    def _is_good(self, error: ErrorCode) -> bool:
        if error is ErrorCode.none:
            return True
        self.errors[error] = self.errors.get(error, 0) + 1
        if error in (
            ErrorCode.not_coordinator,
            ErrorCode.coordinator_not_available,
            ErrorCode.coordinator_load_in_progress,
        ):
            raise Lost
        if error is ErrorCode.unknown_member_id:
            self.member_id = ""
        elif error not in (ErrorCode.rebalance_in_progress, ErrorCode.illegal_generation):
            raise AssertionError(f"member {self.number}: {error.name}")
        return False

    # -- connections and requests ------------------------------------------------------------------

    async def _find_coordinator(self) -> None:
        self._turn += 1
        await self._connect(self._brokers[self._turn % len(self._brokers)])
        request = FindCoordinatorRequest(key_type=0, coordinator_keys=(self.group,))
        [found] = (await self._ask(request)).coordinators
        if found.error_code is not ErrorCode.none:
            raise Lost
        await self._connect((found.host, found.port))

    async def _connect(self, address: Address) -> None:
        self._hang_up()
        opening = asyncio.open_connection(*address)
        self._reader, self._writer = await asyncio.wait_for(opening, ANSWER_SECONDS)

    def _hang_up(self) -> None:
        if self._writer is not None:
            self._writer.close()
        self._reader = self._writer = None

    async def _ask(self, message: Any) -> Any:
        assert self._reader is not None
        assert self._writer is not None
        self._ids += 1
        version = message.__version__
        self._writer.write(encode_request(message, version, self._ids, f"member-{self.number}"))
        return await asyncio.wait_for(self._answer(message, self._reader), ANSWER_SECONDS)

    async def _answer(self, message: Any, reader: asyncio.StreamReader) -> Any:
        (length,) = struct.unpack(">i", await reader.readexactly(4))
        frame = memoryview(await reader.readexactly(length))
        return decode_response(message.__api_key__, message.__version__, frame)


class Crowd:
    """Many members that join and leave at the same time, run by one thread."""

    def __init__(self, group: str, brokers: Sequence[Address]) -> None:
        self.members: list[Member] = []
        self._group = group
        self._brokers = brokers
        self._loop = asyncio.new_event_loop()
        self._tasks: list[asyncio.Task[None]] = []
        self._thread = Thread(target=self._loop.run_forever, daemon=True)

    def __enter__(self) -> "Crowd":
        self._thread.start()
        return self

    def __exit__(self, *_problem: object) -> None:
        self._call(self._end)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    def join(self, count: int) -> None:
        """Let `count` more members join at the same time."""

        async def come() -> None:
            for _ in range(count):
                member = Member(self._group, self._brokers, len(self.members))
                self.members.append(member)
                self._tasks.append(asyncio.ensure_future(member.run()))

        self._call(come)

    def leave(self, count: int) -> None:
        """Let the `count` oldest members leave at the same time."""

        async def go() -> None:
            for member in [one for one in self.members if not one.leaving.is_set()][:count]:
                member.leaving.set()

        self._call(go)

    @property
    def staying(self) -> list[Member]:
        return [one for one in self.members if not one.leaving.is_set()]

    def is_stable(self, since: float) -> bool:
        """Whether all remaining members are in one generation, each with its own assignment.

        The coordinator must have confirmed the generation to each member after `since`.
        """
        for task in self._tasks:
            if task.done() and task.exception() is not None:
                raise AssertionError("a member gave up") from task.exception()
        staying = self.staying
        if not all(one.has_left for one in self.members if one.leaving.is_set()):
            return False
        if min(one.confirmed_at for one in staying) < since:
            return False
        generations = {one.generation for one in staying}
        if len(generations) != 1 or -1 in generations:
            return False
        return len({one.assignment for one in staying}) == len(staying)

    def _call(self, work: Callable[[], Awaitable[None]]) -> None:
        async def run() -> None:
            await work()

        asyncio.run_coroutine_threadsafe(run(), self._loop).result()

    async def _end(self) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
