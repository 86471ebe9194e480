"""Java's string length and hash code, on which Kafka's behaviour depends.

Java counts UTF-16 code units, so a character outside the basic plane counts as two.
"""


def utf16_length(text: str) -> int:
    """Java's `length()`."""
    return len(text) if text.isascii() else len(_utf16(text)) // 2


def hash_code(text: str) -> int:
    """Java's `hashCode()`, a signed 32-bit number."""
    units = _utf16(text)
    total = 0
    for i in range(0, len(units), 2):
        total = (31 * total + (units[i] << 8 | units[i + 1])) & 0xFFFF_FFFF
    return total - (1 << 32) if total >= 1 << 31 else total


def _utf16(text: str) -> bytes:
    return text.encode("utf-16-be", "surrogatepass")
