"""The state of the broker that is passed to every request handler."""

from typing import Any

from tidelog.api.handler import Request
from tidelog.api.records.fetch_sessions import FetchSessions
from tidelog.api.records.producer_ids import ProducerIdBlocks
from tidelog.api.records.share_sessions import ShareSessions
from tidelog.config.settings import BrokerSettings
from tidelog.model.dice import Dice
from tidelog.model.ids import Millis
from tidelog.node.clock import Clock
from tidelog.node.metadata.current_image import CurrentImage
from tidelog.node.quorum.quorum import Quorum
from tidelog.node.requests.client_sessions import ClientSession
from tidelog.security.authorizer import AclAuthorizer


class RequestContext:
    """The node's newest image, settings and time, as handlers see them."""

    def __init__(
        self,
        settings: BrokerSettings,
        clock: Clock,
        dice: Dice,
        quorum: Quorum,
        current: CurrentImage,
    ) -> None:
        self._quorum = quorum
        self._settings = settings
        self._node_id = settings.node_id
        self.clock = clock
        self._producer_ids = ProducerIdBlocks()
        self.fetch_sessions = FetchSessions(
            settings.max_incremental_fetch_session_cache_slots, dice
        )
        self.share_sessions = ShareSessions(settings.group_share_max_share_sessions)
        self.current = current
        self.authorizer: AclAuthorizer | None = None
        """Decides what clients may do; `Authorizing` sets it if one is configured."""

    @property
    def now(self) -> Millis:
        return self.clock.now

    def request(
        self, version: int, client_id: str | None, session: ClientSession, message: Any
    ) -> Request:
        # This function runs for every request. Keyword arguments would double its cost.
        return Request(
            session.conn,
            version,
            client_id,
            session.host,
            session.listener,
            message,
            self.current.image,
            self._settings,
            self._node_id,
            self.clock.now,
            self.fetch_sessions,
            self._producer_ids,
            self._quorum,
            session.principal,
            self.authorizer,
            self.share_sessions,
        )

    def refresh(self, request: Request) -> None:
        request.image = self.current.image
        request.authorizer = self.authorizer
        request.now = self.clock.now
