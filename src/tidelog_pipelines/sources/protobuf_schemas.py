"""Compiles .proto text to plain descriptions of messages, so that executors can decode them.

Only this module imports the compiler and the runtime of Protobuf, and it runs only on the driver.
"""

import base64
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Sequence
from functools import cache
from pathlib import Path, PurePosixPath
from typing import Any

from tidelog_pipelines.transformations.values.protobuf_writer import (
    Message,
    MessageField,
    ProtobufWriter,
)
from tidelog_pipelines.transformations.values.shapes import Incompatible

ROOT = "tidelog_schema_of_the_registry.proto"
"""The file name of the schema itself. The schemas that it imports have their own names."""
COMPILE_SECONDS = 60


@cache
def writer(
    text: str, references: tuple[tuple[str, str], ...], indexes: tuple[int, ...]
) -> ProtobufWriter:
    """The message at this position of a schema; raises `Incompatible`."""
    pool, names = _pool(descriptors(text, references))
    assert ROOT in names
    file = pool.FindFileByName(ROOT)
    choices = list(file.message_types_by_name.values())
    found = None
    for index in indexes:
        found = _at(choices, index)
        choices = list(found.nested_types)
    assert found is not None
    return _writer(found)


def _at(choices: list[Any], index: int) -> Any:
    """The message at a position. Raises `Incompatible` if the position is ambiguous.

    Some serializers count the entries of maps as messages, and others do not.
    """
    own = [one for one in choices if not one.GetOptions().map_entry]
    found = [one[index] for one in (own, choices) if 0 <= index < len(one)]
    found = [one for one in found if not one.GetOptions().map_entry]
    if not found:
        raise Incompatible(f"it has no message at position {index}")
    if found[0].full_name != found[-1].full_name:
        names = " or ".join(one.full_name for one in found)
        raise Incompatible(f"position {index} may be message {names}: serializers differ in this")
    return found[0]


def writer_by_name(text: bytes, is_compiled: bool, message: str) -> ProtobufWriter:
    """The message of this name in a .proto file, or in a compiled set of .proto files."""
    pool, _ = _pool(text if is_compiled else descriptors(text.decode(), ()))
    try:
        return _writer(pool.FindMessageTypeByName(message))
    except KeyError:
        raise Incompatible(f"it has no message {message}") from None


def descriptors(text: str, references: Sequence[tuple[str, str]]) -> bytes:
    """An encoded FileDescriptorSet with a schema and all schemas that it imports.

    A registry answers with the text of a schema, or with the compiled schema in Base64.
    """
    with tempfile.TemporaryDirectory() as directory:
        compiled = b""
        for name, content in [*references, (ROOT, text)]:
            parts = PurePosixPath(name)
            if parts.is_absolute() or ".." in parts.parts:
                raise Incompatible(f"it imports {name}, which is not a relative path")
            if (one := _compiled(name, content)) is not None:
                compiled += one
                continue
            file = Path(directory) / parts
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(content)
        out, given = Path(directory) / "tidelog.descriptors", Path(directory) / "tidelog.given"
        command = [sys.executable, "-P", "-m", "grpc_tools.protoc", f"--proto_path={directory}"]
        if compiled:
            given.write_bytes(compiled)
            command.append(f"--descriptor_set_in={given}")
        done = subprocess.run(
            [*command, "--include_imports", f"--descriptor_set_out={out}", ROOT],
            capture_output=True,
            text=True,
            check=False,
            timeout=COMPILE_SECONDS,
        )
        if done.returncode != 0:
            # The compiler also prints warnings about its log. They do not name a .proto file.
            errors = [line for line in done.stderr.splitlines() if ".proto:" in line]
            first = (errors or done.stderr.splitlines() or ["no reason"])[0]
            reason = first.replace(f"{directory}/", "").replace(f"{ROOT}:", "line ")
            raise Incompatible(f"it is not a valid Protobuf schema ({reason})")
        return out.read_bytes()


def _compiled(name: str, content: str) -> bytes | None:
    """An encoded FileDescriptorSet with this compiled schema; None if the content is a text."""
    from google.protobuf import descriptor_pb2
    from google.protobuf.message import DecodeError

    try:
        raw = base64.b64decode(content, validate=True)
    except ValueError:
        return None
    if not raw:
        return None
    try:
        file = descriptor_pb2.FileDescriptorProto.FromString(raw)
    except DecodeError as error:
        raise Incompatible(f"it is not a valid Protobuf schema ({error})") from None
    file.name = name
    return descriptor_pb2.FileDescriptorSet(file=[file]).SerializeToString()


def _pool(descriptors: bytes) -> tuple[Any, list[str]]:
    from google.protobuf import descriptor_pb2, descriptor_pool
    from google.protobuf.message import DecodeError

    pool = descriptor_pool.DescriptorPool()
    try:
        files = descriptor_pb2.FileDescriptorSet.FromString(descriptors).file
        for file in files:
            pool.Add(file)
    except (DecodeError, TypeError) as error:
        raise Incompatible(f"it is not a set of Protobuf descriptors ({error})") from None
    return pool, [file.name for file in files]


def _writer(root: Any) -> ProtobufWriter:
    messages: dict[str, Message] = {}
    enums: dict[str, dict[int, str]] = {}
    waiting = [root]
    while waiting:
        found = waiting.pop()
        if found.full_name in messages:
            continue
        messages[found.full_name] = Message(
            tuple(_field(field) for field in found.fields), found.GetOptions().map_entry
        )
        for field in found.fields:
            if field.message_type is not None:
                waiting.append(field.message_type)
            if field.enum_type is not None:
                enums[field.enum_type.full_name] = _symbols(field.enum_type.values)
    return ProtobufWriter(root.full_name, messages, enums)


def _symbols(values: Iterable[Any]) -> dict[int, str]:
    """The first name of each enum number. Further names of the same number are aliases."""
    found: dict[int, str] = {}
    for value in values:
        found.setdefault(value.number, value.name)
    return found


def _field(field: Any) -> MessageField:
    oneof = field.containing_oneof
    inner = field.message_type or field.enum_type
    return MessageField(
        number=field.number,
        name=field.name,
        kind=KINDS[field.type],
        type_name="" if inner is None else inner.full_name,
        is_repeated=field.is_repeated,
        has_presence=field.has_presence,
        is_required=field.is_required,
        oneof="" if oneof is None else oneof.name,
    )


KINDS = {
    1: "double",
    2: "float",
    3: "int64",
    4: "uint64",
    5: "int32",
    6: "fixed64",
    7: "fixed32",
    8: "bool",
    9: "string",
    10: "group",
    11: "message",
    12: "bytes",
    13: "uint32",
    14: "enum",
    15: "sfixed32",
    16: "sfixed64",
    17: "sint32",
    18: "sint64",
}
"""The names of field types, by their numbers in a descriptor."""
