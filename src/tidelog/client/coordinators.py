"""Finds the coordinator of a group or transactional id; repeats a request when it has moved."""

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
TRANSACTION = 1
"""FindCoordinator's key type for transactional ids."""
_KEYS = {GROUP: "group", TRANSACTION: "transactional id"}

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
    key: str,
    request: RequestPayload,
    response: type[R],
    error_of: Callable[[R], ErrorCode],
    key_type: int = GROUP,
) -> tuple[GroupCoordinator, R]:
    """Ask the coordinator of a group or transactional id.

    `error_of` returns the error that concerns the whole group or transactional id.
    """
    deadline = time.monotonic() + RETRY_SECONDS
    while True:
        reason = f"the coordinator of {_KEYS[key_type]} '{key}' is not available"
        found = _find(client, key, key_type)
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


def _find(client: Client, key: str, key_type: int) -> GroupCoordinator | ErrorCode:
    """The coordinator, or an error that a retry may resolve."""
    request = FindCoordinatorRequest(key_type=key_type, coordinator_keys=(key,))
    (found,) = client.ask(request, FindCoordinatorResponse).coordinators
    if found.error_code is ErrorCode.none:
        return GroupCoordinator(found.node_id, found.host, found.port)
    if found.error_code in MOVED:
        return found.error_code
    raise RequestRefused(found.error_code, found.error_message or default_message(found.error_code))
