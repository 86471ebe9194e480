"""Looks at the cluster for live pages: at most once per interval and view, however many are open.

Without an open page nothing is asked, so an idle console costs the brokers nothing.
"""

import threading
import time
from collections.abc import Callable
from typing import Any, TypeAlias

from tidelog.client.client import Client
from tidelog.console.client_pool import ClientPool
from tidelog.console.views.cluster_view import MinIsrs, cluster_view
from tidelog.console.views.group_view import group_view, groups_view
from tidelog.console.views.partition_view import PartitionView, topic_view
from tidelog.model.ids import TopicPartition
from tidelog.model.user_error import UserError

INTERVAL_SECONDS = 1.0
FORGET_SECONDS = 60.0
"""A view that no page has shown for this time is forgotten."""
MOST_VIEWS = 200

Look: TypeAlias = Callable[[Client], dict[str, Any]]


class _SharedLook:
    """The last answer of one view; one thread at a time asks for the next."""

    def __init__(self, look: Look) -> None:
        self.look = look
        self.lock = threading.Lock()
        self.used_at = time.monotonic()
        self.looked_at = 0.0
        self.answer: dict[str, Any] = {}


class LiveViews:
    def __init__(self, pool: ClientPool) -> None:
        self._pool = pool
        self._views: dict[str, _SharedLook] = {}
        self._lock = threading.Lock()

    def look(self, view: str) -> dict[str, Any]:
        """The present state of a view: `cluster`, `topic:NAME`, `partition:NAME:N`, `groups`,
        `group:NAME`. Raises UserError if the cluster or the view cannot be reached.
        """
        shared = self._shared(view)
        with shared.lock:
            now = time.monotonic()
            if now - shared.looked_at >= INTERVAL_SECONDS * 0.9:
                with self._pool.borrow() as client:
                    shared.answer = shared.look(client)
                shared.looked_at = time.monotonic()
            return shared.answer

    def _shared(self, view: str) -> _SharedLook:
        now = time.monotonic()
        with self._lock:
            known = self._views.get(view)
            if known is None:
                for name in [n for n, v in self._views.items() if now - v.used_at > FORGET_SECONDS]:
                    del self._views[name]
                if len(self._views) >= MOST_VIEWS:
                    raise UserError("too many different pages are open.")
                known = self._views[view] = _SharedLook(_looker(view))
            known.used_at = now
            return known


def _looker(view: str) -> Look:
    kind, _, name = view.partition(":")
    if kind == "cluster":
        min_isrs = MinIsrs()
        return lambda client: cluster_view(client, min_isrs)
    if kind == "topic" and name:
        return lambda client: topic_view(client, name)
    if kind == "groups":
        return groups_view
    if kind == "group" and name:
        return lambda client: group_view(client, name)
    if kind == "partition":
        topic, _, number = name.rpartition(":")
        if topic and number.isdigit():
            return PartitionView(TopicPartition(topic, int(number))).look
    raise UserError(f"there is no page '{view}'.")
