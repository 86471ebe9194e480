"""The network's own process; it ends when whoever started it does."""

import json
import resource
import signal
import socket
import sys

from tidelog.network.door import Place
from tidelog.network.exchange import Exchange


def main(orders_fd: str, places: str) -> None:
    # Ctrl-C is for whoever started us; the end of the orders is ours.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    # Every connection has two ends here, and a cluster's clients may be many.
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    Exchange(
        [Place(*one) for one in json.loads(places)], socket.socket(fileno=int(orders_fd))
    ).run()


if __name__ == "__main__":
    main(*sys.argv[1:])
