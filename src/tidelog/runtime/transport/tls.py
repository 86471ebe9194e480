"""An encrypted transport: a socket and a TLS session whose handshake is complete.

Invariants: between two calls, the transport holds the ciphertext of at most one `send` that the
socket did not take. While it does, it has reported one byte less than it has encrypted. So its
caller keeps that byte, waits for the socket and calls again, as after any incomplete send.
"""

import os
import socket
from contextlib import suppress

from tidelog.model.disk import Buffer
from tidelog.runtime.transport.plain import BULK_READ_BYTES, Receiver
from tidelog.runtime.transport.tls_session import (
    FEED_BYTES,
    RECORD_BYTES,
    WANTS_INPUT,
    TlsFailure,
    TlsSession,
)

READ_BYTES = 128 * 1024
SEND_BYTES = 64 * 1024
"""How much is encrypted at once."""
UNSENT_BYTES = 64 * 1024
"""How much the session itself may have to send, such as answers to changes of keys."""


class TlsBuffers:
    """The buffers that all encrypted connections of a host share."""

    __slots__ = ("ciphertext", "plaintext")

    def __init__(self) -> None:
        self.ciphertext = memoryview(bytearray(READ_BYTES))
        # A record of which only the end was missing adds its plaintext to that of one read.
        self.plaintext = memoryview(bytearray(READ_BYTES + 2 * RECORD_BYTES))


class TlsTransport:
    __slots__ = ("_buffers", "_is_new", "_owed", "_session", "_sock", "_unsent")

    def __init__(self, sock: socket.socket, session: TlsSession, buffers: TlsBuffers) -> None:
        self._sock = sock
        self._session = session
        self._buffers = buffers
        self._unsent: Buffer = b""
        self._owed = 0
        """1 if the first byte of the next send is already encrypted, else 0."""
        self._is_new = True
        """Whether the session may hold plaintext that arrived with the end of the handshake."""

    def fileno(self) -> int:
        return self._sock.fileno()

    def close(self) -> None:
        with suppress(OSError):  # the peer is gone, or does not read
            if not self._unsent:
                self._sock.send(self._session.farewell())
        self._sock.close()

    # -- Receiving ---------------------------------------------------------------------------------

    def receive(self, conn: Receiver, shared: memoryview) -> list[memoryview] | None:
        frames: list[memoryview] = []
        if self._is_new:
            self._is_new = False
            used = self._decrypt(conn, frames, 0)
            if frames or used is None:
                return frames or None
        most = min(BULK_READ_BYTES if conn.is_bulk else READ_BYTES, len(shared))
        received = self._buffers.ciphertext[:most]
        count = self._sock.recv_into(received)
        if not count:
            return None
        used = 0
        for start in range(0, count, FEED_BYTES):
            self._session.feed(received[start : min(start + FEED_BYTES, count)])
            decrypted = self._decrypt(conn, frames, used)
            if decrypted is None:
                return frames or None  # a farewell is read again if frames came before it
            used = decrypted
        self._answer_session()
        if len(frames) > 1:
            conn.is_bulk = False
        return frames

    def _decrypt(self, conn: Receiver, frames: list[memoryview], used: int) -> int | None:
        """Decrypt all that was fed; returns how much of the shared buffer is in use, None at the
        end of the stream.
        """
        splitter, plaintext = conn.splitter, self._buffers.plaintext
        while True:
            space = splitter.space()
            count = self._session.read_into(plaintext[used:] if space is None else space)
            if count == WANTS_INPUT:
                return used
            if count == 0:
                return None
            if space is None:
                frames += splitter.feed(plaintext[used : used + count])
                used += count
            else:
                conn.is_bulk = True
                frames += splitter.received(count)

    def _answer_session(self) -> None:
        """Send what the session has to send by itself."""
        output = self._session.take_output()
        if output:
            self._unsent = b"".join((self._unsent, output))
            if len(self._unsent) > UNSENT_BYTES + SEND_BYTES:
                raise TlsFailure("its peer does not read")
            with suppress(BlockingIOError):  # the rest leaves with the next send
                self._flush()

    # -- Sending -----------------------------------------------------------------------------------

    def send(self, data: Buffer, flags: int = 0, /) -> int:
        self._flush()
        return self._encrypt_and_send(memoryview(data)[:SEND_BYTES])

    def send_file(self, source: int, position: int, count: int) -> int:
        self._flush()
        return self._encrypt_and_send(os.pread(source, min(count, SEND_BYTES), position))

    def _encrypt_and_send(self, plaintext: Buffer) -> int:
        if not plaintext:
            return 0
        self._unsent = self._session.encrypt(memoryview(plaintext)[self._owed :])
        self._owed = 0
        try:
            self._flush()
        except BlockingIOError:
            self._owed = 1
        return len(plaintext) - self._owed

    def _flush(self) -> None:
        """Send the rest of the ciphertext; raises BlockingIOError if the socket takes less."""
        if not self._unsent:
            return
        sent = self._sock.send(self._unsent)
        if sent < len(self._unsent):
            self._unsent = memoryview(self._unsent)[sent:]
            raise BlockingIOError
        self._unsent = b""
