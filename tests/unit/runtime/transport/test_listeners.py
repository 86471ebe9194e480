"""Listeners that open when the node is ready, and those that open at once."""

import select
import socket

import pytest

from tidelog.model.outbound import LimitConnections
from tidelog.runtime.transport.connection_quotas import ConnectionQuotas
from tidelog.runtime.transport.listeners import Acceptor, bind


def test_a_listener_that_waits_refuses_clients_until_the_node_is_ready() -> None:
    at_once = bind("CONTROLLER", "127.0.0.1", 0)
    later = bind("PLAINTEXT", "127.0.0.1", 0, awaits_ready=True)
    quotas = ConnectionQuotas(LimitConnections(), ["CONTROLLER", "PLAINTEXT"])
    acceptor = Acceptor(select.epoll(), [at_once, later], 10, quotas, lambda: 0)
    socket.create_connection(at_once.sock.getsockname()).close()
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(later.sock.getsockname())
    acceptor.node_is_ready()
    socket.create_connection(later.sock.getsockname()).close()
    assert acceptor.listens_on(later.sock.fileno())
    acceptor.close()
