"""Metadata and control records as JSON, in the form in which Kafka's tools print them."""

import json
import re
from base64 import b64encode, urlsafe_b64encode
from dataclasses import MISSING, fields, is_dataclass
from importlib import import_module
from typing import Any, get_type_hints
from uuid import UUID

from tidelog.protocol.malformed import MalformedMessage
from tidelog.protocol.messages.reader import decode
from tidelog.protocol.metadata import metadata_records
from tidelog.protocol.metadata.codec import decode_record
from tidelog.protocol.metadata.metadata_records import Since, Tag
from tidelog.protocol.records.records import ControlType, Record, control_type
from tidelog.protocol.varint import read_uvarint

_WORD = re.compile(r"(?<!^)(?=[A-Z])")

_CONTROL_SCHEMAS = {
    ControlType.LEADER_CHANGE: ("LeaderChange: ", "leader_change_message", "LeaderChangeMessage"),
    ControlType.SNAPSHOT_HEADER: (
        "SnapshotHeader ",
        "snapshot_header_record",
        "SnapshotHeaderRecord",
    ),
    ControlType.SNAPSHOT_FOOTER: (
        "SnapshotFooter ",
        "snapshot_footer_record",
        "SnapshotFooterRecord",
    ),
    ControlType.KRAFT_VERSION: ("KRaftVersion ", "k_raft_version_record", "KRaftVersionRecord"),
    ControlType.KRAFT_VOTERS: ("KRaftVoters ", "voters_record", "VotersRecord"),
}
"""For each control type: the title that Kafka's tool prints, and the package and class in kio."""


def metadata_json(value: bytes) -> str:
    """One metadata record as JSON, or a sentence that says why the record is unreadable."""
    try:
        record = decode_record(value)
        _, position = read_uvarint(value, 0)
        _, position = read_uvarint(value, position)
        version, _ = read_uvarint(value, position)
    except MalformedMessage as error:
        return f"Error at unreadable metadata record: {error}"
    kind = _WORD.sub("_", type(record).__name__).upper()
    return _compact({"type": kind, "version": version, "data": _of_metadata(record, version)})


def control_text(record: Record) -> str:
    """The content of a control record, as Kafka's tool prints it."""
    kind = control_type(record)
    value = record.value or b""
    if kind in (ControlType.ABORT, ControlType.COMMIT):
        epoch = int.from_bytes(value[2:6], "big", signed=True)
        return f"endTxnMarker: {kind.name} coordinatorEpoch: {epoch}"
    if kind is None or len(value) < 2:
        return "controlType: UNKNOWN(-1)"
    title, package, name = _CONTROL_SCHEMAS[kind]
    version = int.from_bytes(value[:2], "big")
    try:
        module = import_module(f"kio.schema.{package}.v{version}.data")
        return title + _compact(_plain(decode(getattr(module, name), value, 0)))
    except (ImportError, MalformedMessage):
        return f"{title}of version {version}, unreadable"


def _compact(value: object) -> str:
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False)


def _of_metadata(record: Any, version: int) -> dict[str, Any]:
    """The fields of this version. Tagged fields with their default value are left out."""
    hints = get_type_hints(type(record), vars(metadata_records), include_extras=True)
    found = {}
    for field in fields(record):
        notes = getattr(hints[field.name], "__metadata__", ())
        since = next((note.version for note in notes if isinstance(note, Since)), 0)
        is_tagged = any(isinstance(note, Tag) for note in notes)
        value = getattr(record, field.name)
        default = None if field.default is MISSING else field.default
        if version >= since and not (is_tagged and value == default):
            found[_camel(field.name)] = _plain(value, version)
    return found


def _plain(value: Any, version: int | None = None) -> Any:
    match value:
        case UUID():
            return urlsafe_b64encode(value.bytes).decode().rstrip("=")
        case bytes():
            return b64encode(value).decode()
        case tuple():
            return [_plain(one, version) for one in value]
        case _ if is_dataclass(value) and version is not None:
            return _of_metadata(value, version)
        case _ if is_dataclass(value):
            return {
                _camel(field.name): _plain(getattr(value, field.name)) for field in fields(value)
            }
        case _:
            return value


def _camel(name: str) -> str:
    first, *rest = name.split("_")
    return first + "".join(word.capitalize() for word in rest)
