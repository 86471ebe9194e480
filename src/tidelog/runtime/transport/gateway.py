"""New connections, incoming and outgoing, until they can carry requests.

A plaintext connection can do so at once, an encrypted one after its handshake. The gateway reports
each connection to the node by `Connected`, `PeerConnected` or `ConnectFailed`, and not before.
"""

import select
from collections.abc import Callable, Iterator
from itertools import count

from tidelog.model.events import Connected, ConnectFailed, Event, PeerConnected
from tidelog.model.ids import ConnId, Millis
from tidelog.model.outbound import Connect
from tidelog.runtime.transport.connections import Connections
from tidelog.runtime.transport.descriptors import DescriptorReserve
from tidelog.runtime.transport.dialling import Dialler, connect_failed
from tidelog.runtime.transport.handshakes import DEADLINE_MS, SHARE_MS, Handshake, Handshakes
from tidelog.runtime.transport.limits import Limits
from tidelog.runtime.transport.listeners import Accepted, Acceptor, ListeningSocket
from tidelog.runtime.transport.plain import PlainTransport
from tidelog.runtime.transport.tls import TlsBuffers, TlsTransport
from tidelog.runtime.transport.tls_contexts import TlsContexts
from tidelog.runtime.transport.tls_session import TlsSession
from tidelog.security.certificates import BadCertificate, subject_name

NEVER: Millis = 1 << 62


class Gateway:
    def __init__(
        self,
        epoll: select.epoll,
        listeners: list[ListeningSocket],
        limits: Limits,
        connections: Connections,
        reserve: DescriptorReserve,
        contexts: TlsContexts,
    ) -> None:
        self._epoll = epoll
        self._connections = connections
        self._contexts = contexts
        self._dialler = Dialler(epoll, reserve)
        self._handshakes = Handshakes(epoll, self._is_nodes, self._handshake_ended)
        self._acceptor = Acceptor(epoll, listeners, limits.backlog, connections.quotas, self._spare)
        reserve.add_source(self._spare)
        self._buffers = TlsBuffers()
        self._ids = count(1)
        self.ready = self._handshakes.ready
        """The handshakes that can continue; if there are any, the loop calls `shake_hands`."""
        self.due_at = NEVER
        """When to call `keep_time`."""
        self.failed: list[ConnectFailed] = []
        """Failed attempts that are not yet reported to the node."""
        self.node_is_ready = self._acceptor.node_is_ready
        self.resume = self._acceptor.resume

    # -- The loop's timers -------------------------------------------------------------------------

    def keep_time(self, now: Millis) -> None:
        if self._acceptor.resume_at is not None and self._acceptor.resume_at <= now:
            self._acceptor.resume()
        self._handshakes.expire(now)
        self._set_due_at()

    def _set_due_at(self) -> None:
        resume_at, deadline = self._acceptor.resume_at, self._handshakes.next_deadline
        self.due_at = min(
            NEVER if resume_at is None else resume_at, NEVER if deadline is None else deadline
        )

    # -- Incoming and outgoing ---------------------------------------------------------------------

    def serve(self, fd: int, now: Millis) -> Iterator[Event]:
        """Handle what epoll reports about a descriptor; yields the connections that are open."""
        if fd in self._handshakes:
            self._handshakes.note_ready(fd)
        elif self._dialler.dials_on(fd):
            yield from self._finish_connecting(fd, now)
        elif self._acceptor.listens_on(fd):
            for accepted in self._acceptor.accept(fd, now):
                self._epoll.register(accepted.sock.fileno(), select.EPOLLIN)
                if self._contexts.encrypts(accepted.listener):
                    self._await_handshake(accepted, now)
                else:
                    yield self._admit(accepted, PlainTransport(accepted.sock))
        self._set_due_at()

    def dial(self, wish: Connect) -> None:
        error = self._dialler.dial(wish)
        if error is not None:
            self.failed.append(connect_failed(wish.conn, error))

    def hang_up(self, conn: ConnId) -> None:
        self._dialler.hang_up(conn)
        self._handshakes.hang_up(conn)

    def close(self) -> None:
        self._acceptor.close()
        self._dialler.close()
        self._handshakes.close()

    def _admit(self, accepted: Accepted, transport: PlainTransport | TlsTransport) -> Connected:
        conn = next(self._ids)
        self._connections.admit_client(conn, accepted, transport)
        return Connected(conn, accepted.peer, accepted.listener)

    def _finish_connecting(self, fd: int, now: Millis) -> Iterator[Event]:
        wish, sock, error = self._dialler.finish(fd)
        if error is not None:
            yield connect_failed(wish.conn, error)
            return
        self._epoll.modify(fd, select.EPOLLIN)
        peer = f"{wish.host}:{wish.port}"
        if wish.tls_listener:
            context = self._contexts.client(wish.tls_listener, now)
            self._handshakes.add(
                Handshake(
                    sock,
                    peer,
                    lambda: TlsSession(context, wish.host),
                    now + DEADLINE_MS,
                    conn=wish.conn,
                    answer_bytes=wish.answer_bytes,
                )
            )
            return
        self._connections.admit(wish.conn, PlainTransport(sock), peer, wish.answer_bytes)
        yield PeerConnected(wish.conn)

    # -- Handshakes --------------------------------------------------------------------------------

    def shake_hands(self, clock: Callable[[], Millis]) -> Iterator[Event]:
        """Continue handshakes for a share of the pass; yields the connections that are open."""
        until = clock() + SHARE_MS
        turn = self._handshakes.take_turn()
        for done, handshake in enumerate(turn, start=1):
            session = self._handshakes.step(handshake, clock())
            if session is not None:
                event = self._established(handshake, session)
                if event is not None:
                    yield event
            if clock() >= until:
                for later in turn[done:]:
                    self._handshakes.postpone(later)
                return

    def _await_handshake(self, accepted: Accepted, now: Millis) -> None:
        listener, sock, address, peer = accepted
        self._connections.quotas.opened(listener, address)
        self._handshakes.add(
            Handshake(
                sock,
                peer,
                lambda: TlsSession(self._contexts.server(listener, now)),
                now + DEADLINE_MS,
                listener,
                address,
            )
        )

    def _established(self, handshake: Handshake, session: TlsSession) -> Event | None:
        sock = handshake.sock
        self._epoll.modify(sock.fileno(), select.EPOLLIN)
        transport = TlsTransport(sock, session, self._buffers)
        if not handshake.listener:
            self._connections.admit(
                handshake.conn, transport, handshake.peer, handshake.answer_bytes
            )
            return PeerConnected(handshake.conn)
        self._connections.quotas.closed(handshake.listener, handshake.address)
        try:
            certificate = session.certificate()
            subject = "" if certificate is None else subject_name(certificate)
        except BadCertificate:
            sock.close()
            return None
        accepted = Accepted(handshake.listener, sock, handshake.address, handshake.peer)
        event = self._admit(accepted, transport)
        event.subject = subject
        return event

    def _handshake_ended(self, handshake: Handshake, reason: str) -> None:
        if handshake.listener:
            self._connections.quotas.closed(handshake.listener, handshake.address)
            self._acceptor.resume()
        else:
            self.failed.append(ConnectFailed(handshake.conn, False, reason))

    def _is_nodes(self, listener: str) -> bool:
        """Whether only other nodes use this listener."""
        return not self._connections.quotas.may_be_closed(listener)

    def _spare(self) -> int:
        """Close connections that are not in use, to free descriptors; handshakes first."""
        return self._handshakes.spare(self._connections.now) or self._connections.spare()
