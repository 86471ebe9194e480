"""One node as a process: locks its directories, binds its ports and serves until it is stopped.

The supervisor runs `python -m tidelog.runtime --config FILE`. A node that cannot start reports one
sentence, never a traceback.
"""

import gc
import logging
import signal
import socket
import sys
from collections.abc import Callable, Collection
from contextlib import suppress
from threading import Thread

from tidelog.api.registry import REGISTRY
from tidelog.config.keys.unused_keys import unused_keys_message
from tidelog.config.settings import BadSetting, BrokerSettings, parse_properties
from tidelog.controller.configs.connection_limits import connection_limits
from tidelog.controller.image.image import ClusterImage
from tidelog.node.node import Node, NotFormatted, UnusableMetadata
from tidelog.runtime.clock import HostClock
from tidelog.runtime.dice import SystemDice
from tidelog.runtime.files.disk import RealDisk
from tidelog.runtime.logs import log_to_stderr
from tidelog.runtime.long_collections import LongCollections
from tidelog.runtime.loop import Host
from tidelog.runtime.metrics import metrics
from tidelog.runtime.process import (
    CannotStart,
    UnusableDirectory,
    keep_freed_memory,
    lock_directory,
)
from tidelog.runtime.transport.descriptors import (
    DescriptorReserve,
    Shares,
    fewest,
    raise_limit,
    share_out,
)
from tidelog.runtime.transport.limits import Limits
from tidelog.runtime.transport.listeners import ListeningSocket, bind
from tidelog.runtime.transport.tls_contexts import TlsContexts
from tidelog.runtime.transport.tls_stores import BadStore

log = logging.getLogger(__name__)


def run(settings: BrokerSettings, supervisor: socket.socket | None = None) -> int:
    """Run a node with these settings, and return the exit status.

    If there is a supervisor, the node notifies it as soon as the node accepts writes. When the
    supervisor's process ends, the node shuts down.
    """
    log_to_stderr(f"node {settings.node_id}" if supervisor is not None else "")
    for warning in settings.warnings:
        log.warning("%s", warning)
    if unused := unused_keys_message(settings.raw):
        log.info("%s", unused)
    keep_freed_memory()
    try:
        shares = _share_out_descriptors(settings)
        locks = _lock_directories(settings)
        host = _open(settings, locks, shares)
    except CannotStart as failure:
        print(f"tidelog: {failure}.", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 128 + signal.SIGINT
    signal.set_wakeup_fd(host.alarm_fd(), warn_on_full_buffer=False)
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: host.interrupt())
    if supervisor is not None:
        Thread(target=_await_end_of, args=(supervisor, host.begin_shutdown), daemon=True).start()
    # Most objects that exist now are permanent, so the garbage collector need not visit them again.
    gc.collect()
    gc.freeze()
    gc.callbacks.append(LongCollections())

    def ready() -> None:
        log.info("ready")
        if supervisor is not None:
            with suppress(OSError):  # the supervisor has ended, and this process ends with it
                supervisor.send(b"!")

    try:
        return host.run(ready)
    finally:
        # Do not release the locks here. They are released when the process ends, which also frees
        # its ports. So when another process gets the locks, the ports are free.
        signal.set_wakeup_fd(-1)


def _share_out_descriptors(settings: BrokerSettings) -> Shares:
    limit, needed = raise_limit(), fewest(len(settings.log_dirs))
    if limit < needed:
        raise CannotStart(
            f"this process may open only {limit} files (ulimit -Hn); at least {needed} are needed"
        )
    return share_out(limit, len(settings.log_dirs))


def _lock_directories(settings: BrokerSettings) -> dict[str, int]:
    """Lock the usable log directories. The directory of the metadata log must be usable."""
    locks: dict[str, int] = {}
    for path in settings.log_dirs:
        try:
            locks[path] = lock_directory(path)
        except UnusableDirectory as failure:
            if path == settings.metadata_log_dir:
                raise
            log.error("%s", failure)
    return locks


def _open(settings: BrokerSettings, usable: Collection[str], shares: Shares) -> Host:
    # Opening the logs may take a long time, so bind the ports first. If a port is in use, the start
    # fails early. The sockets start to listen last.
    controllers = settings.controller_listener_names
    listeners = [
        _bind(one.name, one.host, one.port, awaits_ready=one.name not in controllers)
        for one in settings.listeners
    ]
    clock, reserve = HostClock(), DescriptorReserve()
    try:
        contexts = TlsContexts(settings.tls_listeners, settings.tls_peers)
        disks = [
            RealDisk(path, shares.files, reserve) if path in usable else None
            for path in settings.log_dirs
        ]
        node = Node(settings, disks, SystemDice(), clock())
    except NotFormatted as failure:
        raise CannotStart(
            f"the log directory {' or '.join(settings.log_dirs)} cannot be used: {failure}"
        ) from None
    except (UnusableMetadata, BadStore) as failure:
        raise CannotStart(str(failure)) from None
    except OSError as error:
        raise CannotStart(f"the log directory cannot be used: {error}") from None
    limits = Limits(
        connections=connection_limits(ClusterImage(), settings),
        controller_listeners=controllers,
        inter_broker_listener=settings.inter_broker_listener_name,
        descriptors=shares,
        idle_ms=settings.connections_max_idle_ms,
        request_bytes=settings.socket_request_max_bytes,
        apis={api.key: (api.name, api.limit.size) for api in REGISTRY.values()},
        # With Kafka's default of 50, if many clients connect at once, some must retry after 1 s.
        backlog=max(settings.socket_listen_backlog_size, 4096),
        http_hint=_http_hint(settings),
    )
    host = Host(node, listeners, limits, clock, reserve, contexts)
    log.info(
        "at most %d open files: %d for clients, %d for each log directory",
        raise_limit(),
        shares.clients,
        shares.files,
    )
    if settings.tidelog_metrics_port is not None:
        at = settings.listeners[0].host, settings.tidelog_metrics_port
        metrics.serve(*at, lambda: node.metrics() + host.metrics(), host.run_soon)
    return host


def _http_hint(settings: BrokerSettings) -> str:
    """A hint for a client that requests metrics at a Kafka port."""
    if settings.tidelog_metrics_port is None:
        return ""
    host = settings.listeners[0].host or "localhost"
    return f"; metrics are at http://{host}:{settings.tidelog_metrics_port}/metrics"


def _bind(name: str, host: str, port: int, *, awaits_ready: bool) -> ListeningSocket:
    try:
        return bind(name, host, port, awaits_ready=awaits_ready)
    except OSError as error:
        where = f"port {port}" + (f" on {host}" if host else "")
        raise CannotStart(f"cannot listen on {where} for {name}: {error.strerror}") from None


def _await_end_of(supervisor: socket.socket, then: Callable[[], None]) -> None:
    with suppress(OSError):
        while supervisor.recv(1):
            pass
    then()


def main(arguments: list[str]) -> int:
    """Run `--config FILE [--supervisor-fd N]`, as passed by the supervisor."""
    options = dict(zip(arguments[::2], arguments[1::2], strict=True))
    config, channel = options["--config"], options.get("--supervisor-fd")
    try:
        with open(config, encoding="utf-8") as file:
            properties = parse_properties(file.read())
        settings = BrokerSettings.from_properties(properties, socket.gethostname())
    except (OSError, UnicodeDecodeError, BadSetting) as failure:
        print(f"tidelog: {config}: {failure}.", file=sys.stderr)
        return 1
    return run(settings, None if channel is None else socket.socket(fileno=int(channel)))
