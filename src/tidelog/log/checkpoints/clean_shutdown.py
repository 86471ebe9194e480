"""The clean-shutdown mark of a log directory (`.kafka_cleanshutdown`).

Invariant: while the mark exists, no data log in the directory has changed since a clean shutdown.
The mark contains the broker epoch of that shutdown. Opening the directory does not change the mark.
The mark is removed durably before a data log is changed for the first time. If a process ends
without changing any data log, the mark remains valid for the next process. The mark does not cover
the metadata log, which changes as soon as a node starts. As in Kafka, every start checks the
metadata log.
"""

import json
from typing import NamedTuple
from uuid import UUID

from tidelog.log import names
from tidelog.log.checkpoints.checkpoints import decode_id, encode_id
from tidelog.model.disk import Disk
from tidelog.model.ids import BrokerEpoch

NO_BROKER_EPOCH: BrokerEpoch = -1
_LARGEST_EPOCH = 2**63 - 1


class CleanShutdown(NamedTuple):
    was_clean: bool
    broker_epoch: BrokerEpoch = NO_BROKER_EPOCH
    """The broker epoch of the shutdown; -1 if the mark does not contain it."""
    incarnation: UUID | None = None
    """The incarnation id that the next process adds to the mark before it registers; None if no
    process has added an id."""


class CleanShutdownMark:
    __slots__ = ("_disk", "_is_there", "_registering", "found")

    def __init__(self, disk: Disk) -> None:
        self._disk = disk
        self.found = _read(disk)
        """The content of the mark when the directory was opened."""
        self._is_there = self.found.was_clean
        self._registering: tuple[BrokerEpoch, UUID] | None = None
        # Sync the names of the partition directories, because a killed process may have left them
        # unsynced.
        disk.sync_directory("")

    @property
    def is_there(self) -> bool:
        return self._is_there

    def withdraw(self) -> None:
        """Remove the mark durably before a log changes.

        Only a clean shutdown sets the mark again.
        """
        if self._is_there:
            self._disk.remove(names.CLEAN_SHUTDOWN)
            self._disk.sync_directory("")
            self._is_there = False

    def note_registration(self, broker_epoch: BrokerEpoch, incarnation: UUID) -> None:
        """Add this process's incarnation id to the mark, before the broker registers.

        `broker_epoch` is the epoch of the clean shutdown.
        """
        if self._is_there and self._registering != (broker_epoch, incarnation):
            self._registering = broker_epoch, incarnation
            self._write(
                {"version": 0, "brokerEpoch": broker_epoch, "incarnation": encode_id(incarnation)}
            )

    def set(self, broker_epoch: BrokerEpoch) -> None:
        """Set the mark with the current broker epoch, after every log was closed and synced."""
        self._write({"version": 0, "brokerEpoch": broker_epoch})
        self._is_there = True

    def _write(self, content: dict[str, int | str]) -> None:
        text = json.dumps(content, separators=(",", ":"))
        self._disk.write_file(names.CLEAN_SHUTDOWN, text.encode())


def _read(disk: Disk) -> CleanShutdown:
    if not disk.exists(names.CLEAN_SHUTDOWN):
        return CleanShutdown(False)
    try:
        content = json.loads(disk.read_file(names.CLEAN_SHUTDOWN))
    except ValueError:
        return CleanShutdown(True)  # older brokers leave an empty mark
    if not isinstance(content, dict):
        return CleanShutdown(True)
    epoch, incarnation = content.get("brokerEpoch"), content.get("incarnation")
    if type(epoch) is not int or not 0 <= epoch <= _LARGEST_EPOCH:
        return CleanShutdown(True)
    run = decode_id(incarnation) if isinstance(incarnation, str) else None
    return CleanShutdown(True, epoch, run)
