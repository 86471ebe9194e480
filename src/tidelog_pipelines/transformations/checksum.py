"""The checksum of a record, as every ledger holds it: half of an MD5, 16 hexadecimal digits.

It covers key and value, each after its length (-1 where there is none), and no header. 64 bits keep
a hundred million records apart; with 32, a million of them would seem to be somebody else's.
"""

from pyspark.sql import Column
from pyspark.sql import functions as f

CHECKSUM_DIGITS = 16


def checksum(key: Column, value: Column) -> Column:
    """The checksum of these two binary columns."""
    return f.substring(f.md5(f.concat(_counted(key), _counted(value))), 1, CHECKSUM_DIGITS)


def _counted(content: Column) -> Column:
    size = f.coalesce(f.octet_length(content), f.lit(-1)).cast("string")
    return f.concat(f.concat(size, f.lit(":")).cast("binary"), f.coalesce(content, f.lit(b"")))
