"""The proxy's event loop: accepts and forwards connections, and follows its parent's orders."""

import json
import selectors
import socket
import time
from collections.abc import Callable, Sequence
from contextlib import suppress

from tidelog.network import sockets
from tidelog.network.conditions import CLIENTS, Conditions, Party, Slowness, Way
from tidelog.network.link import Broken, Link
from tidelog.network.proxy_listener import Place, ProxyListener

LOOK_SECONDS = 0.01
"""How often the loop checks which nodes listen, while at least one proxy is closed."""
LOOK_SHARE = 10
"""With many connections, checks are slow. They get about 1/LOOK_SHARE of the loop's time."""

Handler = Callable[[socket.socket, int], None]


class ProxyLoop:
    def __init__(self, places: Sequence[Place], orders: socket.socket) -> None:
        self._selector = selectors.DefaultSelector()
        self._conditions = Conditions()
        self._pids: dict[int, int] = {}
        self._proxies = [ProxyListener(place) for place in places]
        self._links: dict[Link, ProxyListener] = {}
        self._ports: dict[Link, int] = {}
        self._timed: dict[Link, float] = {}
        self._look_at = 0.0
        self._has_checked = False
        """Whether this pass of the loop has checked the proxies. One check per pass is enough."""
        self._orders = orders
        self._ordered = b""
        self._has_ended = False
        self._watch(orders, selectors.EVENT_READ, self._read_orders)

    def run(self) -> None:
        """Run until the parent process is gone."""
        while not self._has_ended:
            ready = self._selector.select(self._patience())
            self._has_checked = False
            for key, events in ready:
                assert isinstance(key.fileobj, socket.socket)
                handler: Handler = key.data
                handler(key.fileobj, events)
            now = time.monotonic()
            for link in [link for link, at in self._timed.items() if at <= now]:
                self._advance(link)
            if self._look_at <= now and not all(proxy.is_open for proxy in self._proxies):
                self._check_proxies()

    def _patience(self) -> float | None:
        moments = list(self._timed.values())
        if not all(proxy.is_open for proxy in self._proxies):
            moments.append(self._look_at)
        return max(0.0, min(moments) - time.monotonic()) if moments else None

    # -- Proxy listeners ---------------------------------------------------------------------------

    def _check_proxies(self) -> None:
        """Open the proxies of nodes that listen, and shut the other proxies.

        Also called when a node closes a connection, because the node may have died. The proxy of a
        dead node must refuse new connections.
        """
        self._has_checked = True
        began = time.monotonic()
        listening = sockets.listening_ports()
        for proxy in self._proxies:
            # If the way to a dead node is cut, its proxy stays open. A refused connection would
            # tell the party on the other side of the cut that the node is dead.
            is_wanted = proxy.place.port in listening or self._hides(proxy.place)
            if is_wanted and not proxy.is_open:
                proxy.open()
                self._watch(proxy.sock, selectors.EVENT_READ, self._let_in)
            elif proxy.is_open and not is_wanted:
                self._watch(proxy.sock, 0, self._let_in)
                proxy.shut()
        ended = time.monotonic()
        self._look_at = ended + max(LOOK_SECONDS, LOOK_SHARE * (ended - began))

    def _hides(self, place: Place) -> bool:
        others = {CLIENTS, *(proxy.place.node for proxy in self._proxies)} - {place.node}
        return any(self._conditions.is_cut(Way(o, place.node, place.listener)) for o in others)

    def _let_in(self, sock: socket.socket, events: int) -> None:
        proxy = next(proxy for proxy in self._proxies if proxy.sock is sock)
        while True:
            try:
                accepted, (_, port) = sock.accept()
            except OSError:
                return
            # Finding the dialling process is slow, and needed only if a way is cut or slow.
            dialler = CLIENTS if self._conditions.is_calm else self._owner(port, proxy)
            link = Link(dialler, proxy.place.node, proxy.place.listener, accepted)
            self._links[link] = proxy
            self._ports[link] = port
            self._advance(link)

    def _owner(self, port: int, proxy: ProxyListener) -> Party:
        found = sockets.owner(port, proxy.place.proxy_port, self._pids)
        return CLIENTS if found is None else found

    def _identify(self) -> None:
        """Find the connections that belong to nodes but were counted as connections of clients."""
        owners = sockets.owners(self._pids)
        for link, proxy in self._links.items():
            if link.dialler == CLIENTS:
                link.identify(owners.get((self._ports[link], proxy.place.proxy_port), CLIENTS))

    # -- Forwarding on links -----------------------------------------------------------------------

    def _advance(self, link: Link) -> None:
        now = time.monotonic()
        try:
            link.advance(self._links[link].place.port, self._conditions, now)
        except Broken as broken:
            self._forget(link, reset=broken.__cause__ is not None)
            return
        for sock, wanted in link.interests(self._conditions, now):
            self._watch(sock, wanted, lambda sock, events: self._on_link(link, sock, events))
        due = link.due_at(now)
        if due is None:
            self._timed.pop(link, None)
        else:
            self._timed[link] = due

    def _on_link(self, link: Link, sock: socket.socket, events: int) -> None:
        if link not in self._links:
            return  # an event on its other socket has closed the link
        if events & selectors.EVENT_READ:
            try:
                is_alone = self._conditions.is_calm and events == selectors.EVENT_READ
                if is_alone and link.pass_on(sock):
                    return
                if link.take(sock, self._conditions, time.monotonic()) and not self._has_checked:
                    self._check_proxies()
            except Broken:
                self._forget(link, reset=True)
                return
        self._advance(link)

    def _forget(self, link: Link, *, reset: bool) -> None:
        if reset and not self._has_checked:
            self._check_proxies()
        for sock in link.sockets:
            self._watch(sock, 0, None)
        self._links.pop(link)
        self._ports.pop(link)
        self._timed.pop(link, None)
        link.close(reset=reset)

    # -- Orders from the parent --------------------------------------------------------------------

    def _read_orders(self, sock: socket.socket, events: int) -> None:
        received = b""
        with suppress(ConnectionResetError):
            received = sock.recv(65536)
        self._has_ended = not received
        *lines, self._ordered = (self._ordered + received).split(b"\n")
        for line in lines:
            self._execute(**json.loads(line))
            with suppress(OSError):
                self._orders.sendall(b"\n")

    def _execute(
        self,
        pids: dict[str, int] | None = None,
        cut: tuple[list[int], list[int], list[str]] | None = None,
        slow: tuple[int, float, float | None] | None = None,
        heal: bool = False,
    ) -> None:
        if pids is not None:
            self._pids = {int(node): pid for node, pid in pids.items()}
        if cut is not None:
            self._conditions.cut(*cut)
        if slow is not None:
            party, latency, rate = slow
            self._conditions.slow(party, Slowness(latency, rate))
        if heal:
            self._conditions.heal()
        if not self._conditions.is_calm:
            self._identify()
        self._check_proxies()
        for link in list(self._links):
            if link in self._links:
                self._advance(link)

    def _watch(self, sock: socket.socket, events: int, handler: Handler | None) -> None:
        known = self._selector.get_map().get(sock)
        if events == 0:
            if known is not None:
                self._selector.unregister(sock)
        elif known is None:
            self._selector.register(sock, events, handler)
        elif known.events != events:
            self._selector.modify(sock, events, handler)
