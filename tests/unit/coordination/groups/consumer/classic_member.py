"""A client with the classic protocol and the cooperative embedded consumer protocol."""

import struct
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from kio.schema.heartbeat.v4.request import HeartbeatRequest
from kio.schema.join_group.v9.request import JoinGroupRequest, JoinGroupRequestProtocol
from kio.schema.leave_group.v5.request import LeaveGroupRequest, MemberIdentity
from kio.schema.sync_group.v5.request import SyncGroupRequest, SyncGroupRequestAssignment

from tidelog.coordination.groups.consumer.embedded_protocol import write_assignment
from tidelog.model.errors import ErrorCode

Partitions = tuple[tuple[str, tuple[int, ...]], ...]


@dataclass
class FakeClassicMember:
    name: str
    member_id: str = ""
    generation: int = -1
    topics: tuple[str, ...] = ()
    owned: Partitions = ()
    instance_id: str | None = None

    def joining(self, group: str) -> JoinGroupRequest:
        protocol = JoinGroupRequestProtocol(name="range", metadata=self.subscription())
        return JoinGroupRequest(
            group_id=group,
            session_timeout=timedelta(seconds=10),
            rebalance_timeout=timedelta(seconds=60),
            member_id=self.member_id,
            group_instance_id=self.instance_id,
            protocol_type="consumer",
            protocols=(protocol,),
        )

    def syncing(self, group: str, given: dict[str, Any]) -> SyncGroupRequest:
        return SyncGroupRequest(
            group_id=group,
            generation_id=self.generation,
            member_id=self.member_id,
            group_instance_id=self.instance_id,
            protocol_type="consumer",
            protocol_name="range",
            assignments=tuple(
                SyncGroupRequestAssignment(member_id=to, assignment=write_assignment(partitions, 1))
                for to, partitions in given.items()
            ),
        )

    def beating(self, group: str) -> HeartbeatRequest:
        return HeartbeatRequest(
            group_id=group,
            generation_id=self.generation,
            member_id=self.member_id,
            group_instance_id=self.instance_id,
        )

    def leaving(self, group: str) -> LeaveGroupRequest:
        return LeaveGroupRequest(
            group_id=group,
            members=(
                MemberIdentity(
                    member_id=self.member_id, group_instance_id=self.instance_id, reason=None
                ),
            ),
        )

    def hear_join(self, answer: Any) -> None:
        if answer.error_code is ErrorCode.member_id_required:
            self.member_id = answer.member_id
        elif answer.error_code is ErrorCode.none:
            self.member_id, self.generation = answer.member_id, answer.generation_id
        elif answer.error_code is ErrorCode.unknown_member_id:
            self.member_id, self.owned = "", ()

    def subscription(self) -> bytes:
        """The subscription in version 1, with the owned partitions."""
        out = bytearray(struct.pack(">hi", 1, len(self.topics)))
        for topic in self.topics:
            out += struct.pack(">h", len(topic)) + topic.encode()
        out += struct.pack(">i", -1)
        # An assignment begins with its version, and the rest up to the user data is the same.
        return bytes(out) + write_assignment(self.owned, 1)[2:-4]
