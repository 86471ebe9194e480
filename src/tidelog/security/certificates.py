"""The name of the subject of a certificate, as Java writes it (RFC 2253), from DER.

Kafka builds the principal of a client from this text, so it must be the same to the byte. ACLs name
it. OpenSSL has parsed and verified the certificate before.
"""

from collections.abc import Iterator
from typing import NamedTuple

_KEYWORDS = {
    "2.5.4.3": "CN",
    "2.5.4.6": "C",
    "2.5.4.7": "L",
    "2.5.4.8": "ST",
    "2.5.4.9": "STREET",
    "2.5.4.10": "O",
    "2.5.4.11": "OU",
    "0.9.2342.19200300.100.1.1": "UID",
    "0.9.2342.19200300.100.1.25": "DC",
}
_ENCODINGS = {
    12: "utf-8",
    19: "ascii",
    20: "latin-1",
    22: "ascii",
    27: "ascii",
    28: "utf-32-be",
    30: "utf-16-be",
}
"""The encodings of DER's string types. A value of another type is written in hexadecimal."""
_VERSION = 0xA0
_FIELDS_BEFORE_SUBJECT = 4
"""Serial number, signature algorithm, issuer and validity."""


class BadCertificate(ValueError):
    """The bytes are not a certificate."""


class _Element(NamedTuple):
    tag: int
    content: bytes
    whole: bytes


def subject_name(certificate: bytes) -> str:
    """The subject of a certificate in DER; raise BadCertificate if the bytes are anything else."""
    try:
        body = next(_elements(next(_elements(certificate)).content))
        fields = [field for field in _elements(body.content) if field.tag != _VERSION]
        names = [
            _relative_name(part.content)
            for part in _elements(fields[_FIELDS_BEFORE_SUBJECT].content)
        ]
    except (StopIteration, IndexError, ValueError):
        raise BadCertificate("its certificate cannot be read") from None
    return ",".join(reversed(names))


def _elements(der: bytes) -> Iterator[_Element]:
    position = 0
    while position < len(der):
        tag, length, start = der[position], der[position + 1], position + 2
        if length >= 0x80:
            size = length & 0x7F
            length = int.from_bytes(der[start : start + size], "big")
            start += size
        end = start + length
        if end > len(der):
            raise IndexError
        yield _Element(tag, der[start:end], der[position:end])
        position = end


def _relative_name(content: bytes) -> str:
    """The attributes of one relative name. Most have one attribute."""
    return "+".join(_attribute(one.content) for one in _elements(content))


def _attribute(content: bytes) -> str:
    kind, value = list(_elements(content))[:2]
    name = _object_id(kind.content)
    keyword, encoding = _KEYWORDS.get(name), _ENCODINGS.get(value.tag)
    if keyword is None or encoding is None:
        return f"{keyword or name}=#{value.whole.hex()}"
    return f"{keyword}={_escaped(value.content.decode(encoding))}"


def _object_id(content: bytes) -> str:
    numbers, number = [], 0
    for byte in content:
        number = number << 7 | byte & 0x7F
        if byte < 0x80:
            numbers.append(number)
            number = 0
    first = min(numbers[0] // 40, 2)
    return ".".join(map(str, (first, numbers[0] - 40 * first, *numbers[1:])))


def _escaped(text: str) -> str:
    escaped = "".join(f"\\{char}" if char in ',+"\\<>;' else char for char in text)
    if escaped.startswith(("#", " ")):
        escaped = f"\\{escaped}"
    if len(escaped) > 1 and escaped.endswith(" ") and not escaped.endswith("\\ "):
        escaped = f"{escaped[:-1]}\\ "
    return escaped
