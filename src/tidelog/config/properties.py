"""Java's .properties format, the format of server.properties."""

from collections.abc import Iterator, Mapping

_SEPARATORS = "=: \t\f"
_ESCAPES = {"t": "\t", "n": "\n", "r": "\r", "f": "\f"}
_ESCAPED = {character: f"\\{letter}" for letter, character in _ESCAPES.items()}


def parse_properties(text: str) -> dict[str, str]:
    """Parse keys and values. The last value of a repeated key counts, as in Java."""
    return dict(_split(line) for line in _logical_lines(text))


def format_properties(properties: Mapping[str, str]) -> str:
    """Format properties as ASCII lines, which `parse_properties` and Java parse to equal values."""
    return "".join(
        f"{_escape(key, is_key=True)}={_escape(value, is_key=False)}\n"
        for key, value in properties.items()
    )


def _escape(text: str, *, is_key: bool) -> str:
    out: list[str] = []
    for place, character in enumerate(text):
        if character in _ESCAPED:
            out.append(_ESCAPED[character])
        elif (
            character == "\\"
            or (character == " " and (is_key or place == 0))
            or (is_key and character in "=:#!")
        ):
            out.append("\\" + character)
        elif " " <= character <= "~":
            out.append(character)
        else:
            units = character.encode("utf-16-be", "surrogatepass")
            out += [f"\\u{units[at] << 8 | units[at + 1]:04x}" for at in range(0, len(units), 2)]
    return "".join(out)


def _logical_lines(text: str) -> Iterator[str]:
    """Lines without comments and blank lines; a line is joined with its continuation lines."""
    joined: str | None = None
    for raw in text.replace("\r\n", "\n").replace("\r", "\n").split("\n"):
        line = raw.lstrip(" \t\f")
        if joined is None and (not line or line[0] in "#!"):
            continue
        joined = (joined or "") + line
        if _ends_with_continuation(joined):
            joined = joined[:-1]
            continue
        yield joined
        joined = None
    if joined:
        yield joined


def _ends_with_continuation(line: str) -> bool:
    backslashes = len(line) - len(line.rstrip("\\"))
    return backslashes % 2 == 1


def _split(line: str) -> tuple[str, str]:
    position = 0
    while position < len(line) and line[position] not in _SEPARATORS:
        position += 2 if line[position] == "\\" else 1
    key, rest = line[:position], line[position:].lstrip(" \t\f")
    if rest[:1] in ("=", ":"):
        rest = rest[1:].lstrip(" \t\f")
    return _unescape(key), _unescape(rest)


def _unescape(text: str) -> str:
    if "\\" not in text:
        return text
    out: list[str] = []
    position = 0
    while position < len(text):
        character = text[position]
        position += 1
        if character != "\\" or position == len(text):
            out.append(character)
            continue
        escaped = text[position]
        position += 1
        digits = text[position : position + 4]
        if (
            escaped == "u"
            and len(digits) == 4
            and all(d in "0123456789abcdefABCDEF" for d in digits)
        ):
            out.append(chr(int(digits, 16)))
            position += 4
        else:
            out.append(_ESCAPES.get(escaped, escaped))
    # Java writes a character beyond 16 bits as two escapes, a surrogate pair.
    units = "".join(out).encode("utf-16-le", "surrogatepass")
    return units.decode("utf-16-le", "surrogatepass")
