"""Kafka's messages as plain dicts, encoded according to the schemas in Apache Kafka's own jar.

This code shares nothing with the broker under test. Decoding is strict: a response that is too
short, too long or badly tagged is an error. Encoding is lax on purpose: None becomes null even
where a schema forbids it, so that a test can send invalid requests.
"""

import json
import struct
import zipfile
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple
from uuid import UUID

FIXED = {
    "bool": "?", "int8": "b", "int16": "h", "uint16": "H", "int32": "i", "uint32": "I",
    "int64": "q", "float64": "d",
}  # fmt: skip
ZERO_UUID = UUID(int=0)


class Versions(NamedTuple):
    """A range such as 0-4, 3+ or none."""

    low: int
    high: int

    @classmethod
    def parse(cls, text: str | None) -> "Versions":
        if text is None or text == "none":
            return cls(0, -1)
        low, dash, high = text.rstrip("+").partition("-")
        return cls(int(low), int(high) if dash else (1 << 15 if text.endswith("+") else int(low)))

    def __contains__(self, version: object) -> bool:
        return isinstance(version, int) and self.low <= version <= self.high


class Cursor:
    """Reads from a buffer, and never past its end."""

    def __init__(self, data: bytes) -> None:
        self.data, self.at = data, 0

    def take(self, size: int) -> bytes:
        if size < 0 or self.at + size > len(self.data):
            raise ValueError(f"{size} bytes wanted at {self.at} of {len(self.data)}")
        self.at += size
        return self.data[self.at - size : self.at]

    def number(self, code: str) -> Any:
        (value,) = struct.unpack(">" + code, self.take(struct.calcsize(code)))
        return value

    def varint(self) -> int:
        value = shift = 0
        while True:
            byte = self.take(1)[0]
            value |= (byte & 0x7F) << shift
            shift += 7
            if byte < 0x80:
                return value


def varint(value: int) -> bytes:
    """An unsigned varint."""
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


class Field:
    def __init__(
        self, spec: Mapping[str, Any], structs: Mapping[str, "Struct"], flexible: Versions
    ):
        self.name: str = spec["name"][0].lower() + spec["name"][1:]
        self.versions = Versions.parse(spec.get("versions", "0+"))
        self.nullable = Versions.parse(spec.get("nullableVersions"))
        self.tagged = Versions.parse(spec.get("taggedVersions"))
        self.tag: int = spec.get("tag", -1)
        self.flexible = (
            Versions.parse(spec["flexibleVersions"]) if "flexibleVersions" in spec else flexible
        )
        self.is_array: bool = spec["type"].startswith("[]")
        self.kind: str = spec["type"].removeprefix("[]")
        self.struct = structs.get(self.kind)
        if spec.get("fields"):
            self.struct = Struct(spec["fields"], structs, flexible)
        self._default = spec.get("default")

    def default(self, version: int) -> Any:
        given = self._default
        if given == "null":
            return None
        if self.is_array:
            return []
        if self.struct is not None:
            return self.struct.defaults(version)
        if self.kind == "bool":
            return given in (True, "true")
        if self.kind in FIXED:
            return float(given or 0) if self.kind == "float64" else int(str(given or 0), 0)
        if self.kind == "uuid":
            return ZERO_UUID
        if self.kind == "string":
            return given or ""
        return None if version in self.nullable else b""

    def encode(self, value: Any, version: int) -> bytes:
        compact = version in self.flexible
        if self.is_array:
            if value is None:
                return varint(0) if compact else struct.pack(">i", -1)
            count = varint(len(value) + 1) if compact else struct.pack(">i", len(value))
            return count + b"".join(self._encode_one(item, version) for item in value)
        if self.struct is not None and version in self.nullable:
            return b"\xff" if value is None else b"\x01" + self._encode_one(value, version)
        return self._encode_one(value, version)

    def _encode_one(self, value: Any, version: int) -> bytes:
        if self.struct is not None:
            return self.struct.encode(value, version)
        if self.kind in FIXED:
            return struct.pack(">" + FIXED[self.kind], value)
        if self.kind == "uuid":
            return bytes(value.bytes)
        data = value.encode("utf-8", "surrogateescape") if isinstance(value, str) else value
        short = self.kind == "string"
        if version in self.flexible:
            return varint(0) if data is None else varint(len(data) + 1) + data
        size = struct.pack(">h" if short else ">i", -1 if data is None else len(data))
        return size + (data or b"")

    def decode(self, cursor: Cursor, version: int) -> Any:
        compact = version in self.flexible
        if self.is_array:
            count = cursor.varint() - 1 if compact else cursor.number("i")
            if count < 0:
                return self._null(version)
            return [self._decode_one(cursor, version) for _ in range(count)]
        if self.struct is not None and version in self.nullable and cursor.number("b") < 0:
            return None
        return self._decode_one(cursor, version)

    def _decode_one(self, cursor: Cursor, version: int) -> Any:
        if self.struct is not None:
            return self.struct.decode(cursor, version)
        if self.kind in FIXED:
            return cursor.number(FIXED[self.kind])
        if self.kind == "uuid":
            return UUID(bytes=cursor.take(16))
        if version in self.flexible:
            size = cursor.varint() - 1
        else:
            size = cursor.number("h" if self.kind == "string" else "i")
        if size < 0:
            return self._null(version)
        data = cursor.take(size)
        return data.decode() if self.kind == "string" else data

    def _null(self, version: int) -> None:
        # In old versions of Fetch, Kafka sends null records although its schema forbids null.
        if version not in self.nullable and self.kind != "records":
            raise ValueError(f"null in {self.name}, which may not be null in version {version}")


class Struct:
    def __init__(
        self, specs: list[dict[str, Any]], structs: Mapping[str, "Struct"], flexible: Versions
    ) -> None:
        self.flexible = flexible
        self.fields = [Field(spec, structs, flexible) for spec in specs]

    def defaults(self, version: int) -> dict[str, Any]:
        return {f.name: f.default(version) for f in self.fields if version in f.versions}

    def encode(self, values: Mapping[str, Any], version: int) -> bytes:
        if unknown := values.keys() - {f.name for f in self.fields}:
            raise ValueError(f"no such field: {sorted(unknown)}")
        out, tagged = bytearray(), {}
        for f in self.fields:
            if version not in f.versions:
                continue
            value = values.get(f.name, f.default(version))
            if version not in f.tagged:
                out += f.encode(value, version)
            elif value != f.default(version):
                tagged[f.tag] = f.encode(value, version)
        if version in self.flexible:
            out += varint(len(tagged))
            for tag in sorted(tagged):
                out += varint(tag) + varint(len(tagged[tag])) + tagged[tag]
        return bytes(out)

    def decode(self, cursor: Cursor, version: int) -> dict[str, Any]:
        values = self.defaults(version)
        for f in self.fields:
            if version in f.versions and version not in f.tagged:
                values[f.name] = f.decode(cursor, version)
        if version in self.flexible:
            by_tag = {f.tag: f for f in self.fields if version in f.tagged}
            for _ in range(cursor.varint()):
                tag, size = cursor.varint(), cursor.varint()
                inner = Cursor(cursor.take(size))
                values[by_tag[tag].name] = by_tag[tag].decode(inner, version)
                if inner.at != size:
                    raise ValueError(f"{size - inner.at} bytes too many in tag {tag}")
        return values


class Message:
    """One schema file: a request, a response or a header."""

    def __init__(self, spec: dict[str, Any]) -> None:
        self.api_key: int = spec.get("apiKey", -1)
        self.versions = Versions.parse(spec["validVersions"])
        self.flexible = Versions.parse(spec.get("flexibleVersions"))
        structs: dict[str, Struct] = {}
        for common in spec.get("commonStructs", []):
            structs[common["name"]] = Struct(common["fields"], structs, self.flexible)
        self.body = Struct(spec.get("fields", []), structs, self.flexible)

    def encode(self, values: Mapping[str, Any], version: int) -> bytes:
        return self.body.encode(values, version)

    def decode(self, data: bytes, version: int) -> dict[str, Any]:
        cursor = Cursor(data)
        values = self.body.decode(cursor, version)
        if cursor.at != len(data):
            raise ValueError(f"{len(data) - cursor.at} bytes too many after the message")
        return values


class Schemas:
    """Every message of the Apache Kafka release in this directory of jars."""

    def __init__(self, libs: Path) -> None:
        self.libs = libs
        (jar,) = libs.glob("kafka-clients-[0-9]*.jar")
        self._files: dict[str, str] = {}
        with zipfile.ZipFile(jar) as archive:
            for name in archive.namelist():
                if name.startswith("common/message/") and name.endswith(".json"):
                    self._files[Path(name).stem] = archive.read(name).decode()
        self.message = cache(self._load)

    def _load(self, name: str) -> Message:
        lines = self._files[name].splitlines()
        return Message(json.loads("\n".join(x for x in lines if not x.lstrip().startswith("//"))))

    def request(self, api: str) -> Message:
        return self.message(f"{api}Request")

    def response(self, api: str) -> Message:
        return self.message(f"{api}Response")

    @property
    def apis(self) -> dict[int, str]:
        """API key -> name, for every request of Kafka's clients and brokers."""
        names = (name.removesuffix("Request") for name in self._files if name.endswith("Request"))
        return {self.request(name).api_key: name for name in names}
