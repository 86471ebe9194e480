"""Finds the coordinator of a group, and repeats a request when the coordinator has moved."""

import time
from collections.abc import Callable
from typing import NamedTuple, TypeVar

from kio.schema.find_coordinator.v4.request import FindCoordinatorRequest
from kio.schema.find_coordinator.v4.response import FindCoordinatorResponse
from kio.static.protocol import RequestPayload, ResponsePayload

from tidelog.client.admin import RequestRefused
from tidelog.client.client import PAUSE_SECONDS, RETRY_SECONDS, BrokerNotReached, Client
from tidelog.client.kafka_exceptions import default_message
from tidelog.model.errors import ErrorCode
from tidelog.model.ids import NodeId
from tidelog.model.user_error import UserError

GROUP = 0
"""FindCoordinator's key type for groups of all kinds."""

MOVED = (
    ErrorCode.coordinator_load_in_progress,
    ErrorCode.coordinator_not_available,
    ErrorCode.not_coordinator,
)

R = TypeVar("R", bound=ResponsePayload)


class GroupCoordinator(NamedTuple):
    node: NodeId
    host: str
    port: int


def ask_coordinator(
    client: Client,
    group: str,
    request: RequestPayload,
    response: type[R],
    error_of: Callable[[R], ErrorCode],
) -> tuple[GroupCoordinator, R]:
    """Ask the group's coordinator; `error_of` returns the error that concerns the whole group."""
    deadline = time.monotonic() + RETRY_SECONDS
    while True:
        reason = f"the coordinator of group '{group}' is not available"
        found = _find(client, group)
        if isinstance(found, GroupCoordinator):
            try:
                answer = client.ask_node(found.node, request, response)
            except BrokerNotReached as down:
                reason = f"{reason}: {down}".rstrip(".")
            else:
                if (error := error_of(answer)) not in MOVED:
                    client.notice.over()
                    return found, answer
                reason = f"{reason}: {default_message(error)}".rstrip(".")
        if time.monotonic() > deadline:
            raise UserError(f"{reason}; gave up after {RETRY_SECONDS:.0f} s.")
        client.notice.waiting(reason)
        time.sleep(PAUSE_SECONDS)


def _find(client: Client, group: str) -> GroupCoordinator | ErrorCode:
    """The group's coordinator, or an error that a retry may resolve."""
    request = FindCoordinatorRequest(key_type=GROUP, coordinator_keys=(group,))
    (found,) = client.ask(request, FindCoordinatorResponse).coordinators
    if found.error_code is ErrorCode.none:
        return GroupCoordinator(found.node_id, found.host, found.port)
    if found.error_code in MOVED:
        return found.error_code
    raise RequestRefused(found.error_code, found.error_message or default_message(found.error_code))
