"""The process of the proxy network, which ends when the process that started it ends."""

import json
import resource
import signal
import socket
import sys

from tidelog.network.proxy_listener import Place
from tidelog.network.proxy_loop import ProxyLoop


def main(orders_fd: str, places: str) -> None:
    # Ignore Ctrl-C, because this process ends when its parent closes the socket that carries the
    # orders.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    # Every connection takes two descriptors here, and a cluster may have many clients.
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    ProxyLoop(
        [Place(*one) for one in json.loads(places)], socket.socket(fileno=int(orders_fd))
    ).run()


if __name__ == "__main__":
    main(*sys.argv[1:])
