"""The checksum of a record in a ledger: the first half of an MD5, 16 hexadecimal digits.

The checksum covers the key and the value, each with its length (-1 for null). It does not cover
headers. 64 bits distinguish a hundred million records. With 32 bits, collisions would be likely
among a million.
"""

from pyspark.sql import Column
from pyspark.sql import functions as f

CHECKSUM_DIGITS = 16


def checksum(key: Column, value: Column) -> Column:
    """The checksum of a key and a value, which are binary columns."""
    return f.substring(f.md5(f.concat(_counted(key), _counted(value))), 1, CHECKSUM_DIGITS)


def _counted(content: Column) -> Column:
    size = f.coalesce(f.octet_length(content), f.lit(-1)).cast("string")
    return f.concat(f.concat(size, f.lit(":")).cast("binary"), f.coalesce(content, f.lit(b"")))
