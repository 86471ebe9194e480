"""Sends commands to a running `tidelog up` through a Unix socket in the cluster's directory.

A client sends one line, such as `VERB ID`. The client gets one line: `ok TEXT`, or `no` and the
reason. The answer is sent when the command is complete, and other clients are served in the
meantime. A client that sends only half a line, or does not read its answer, delays no other client.
"""

import os
import selectors
import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TypeAlias

from tidelog.clusters.running_clusters import listed, running_clusters
from tidelog.model.user_error import UserError

NAME = ".control"
LONGEST_LINE = 256

Reply: TypeAlias = Callable[[str], None]
Obey: TypeAlias = Callable[[str, Reply], None]


@contextmanager
def _address(directory: Path) -> Iterator[str]:
    """A short path to the socket. The system allows at most 107 bytes for a socket's path."""
    opened = os.open(directory, os.O_RDONLY | os.O_DIRECTORY)
    try:
        yield f"/proc/self/fd/{opened}/{NAME}"
    finally:
        os.close(opened)


class ControlSocket:
    """Listens in a directory and passes each line to the supervisor."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._peers: dict[socket.socket, bytearray] = {}

    def open(self, selector: selectors.BaseSelector, obey: Obey) -> None:
        self._selector, self._obey = selector, obey
        (self._directory / NAME).unlink(missing_ok=True)
        self._listener = socket.socket(socket.AF_UNIX)
        self._listener.setblocking(False)
        with _address(self._directory) as address:
            self._listener.bind(address)
        self._listener.listen()
        selector.register(self._listener, selectors.EVENT_READ, self._accept)

    def close(self) -> None:
        (self._directory / NAME).unlink(missing_ok=True)
        self._listener.close()
        for peer in self._peers:
            peer.close()

    def _accept(self) -> None:
        with suppress(BlockingIOError):
            peer, _ = self._listener.accept()
            peer.setblocking(False)
            self._peers[peer] = bytearray()
            self._selector.register(peer, selectors.EVENT_READ, lambda: self._hear(peer))

    def _hear(self, peer: socket.socket) -> None:
        line = self._peers[peer]
        try:
            said = peer.recv(LONGEST_LINE)
        except OSError:
            said = b""
        line += said
        if b"\n" in line:
            self._selector.unregister(peer)
            self._answer(peer, line.partition(b"\n")[0].decode(errors="replace"))
        elif not said or len(line) > LONGEST_LINE:
            self._selector.unregister(peer)
            self._hang_up(peer)

    def _answer(self, peer: socket.socket, line: str) -> None:
        try:
            self._obey(line, lambda text: self._say(peer, f"ok {text}"))
        except UserError as failure:
            self._say(peer, f"no {failure}")

    def _say(self, peer: socket.socket, text: str) -> None:
        with suppress(OSError):  # the client is gone or does not read
            peer.send(f"{text}\n".encode())
        self._hang_up(peer)

    def _hang_up(self, peer: socket.socket) -> None:
        del self._peers[peer]
        peer.close()


def ask(directory: Path, line: str) -> str:
    """Send a command to the cluster that runs in this directory, and return its answer."""
    with socket.socket(socket.AF_UNIX) as control:
        try:
            with _address(directory) as address:
                control.connect(address)
            control.sendall(f"{line}\n".encode())
            answer = b"".join(iter(lambda: control.recv(65536), b"")).decode()
        except PermissionError as error:
            raise UserError(f"{directory / NAME}: {error.strerror}.") from None
        except OSError:
            raise UserError(f"no cluster is running in {directory}; {_advice(directory)}") from None
    verdict, _, text = answer.rstrip("\n").partition(" ")
    if verdict == "ok":
        return text
    raise UserError(text or f"the cluster in {directory} has ended.")


def _advice(directory: Path) -> str:
    others = [one for one in running_clusters() if one.directory != directory.absolute()]
    match others:
        case []:
            return "`tidelog up` starts one."
        case [other]:
            return f"one is running in {listed(others)}: use --dir {other.shown_directory}."
        case _:
            return f"clusters are running in {listed(others)}: choose one with --dir."
