"""Corrects the timestamps that Spark's Kafka connector gives to records from before 1582.

The connector converts timestamps with java.sql.Timestamp. That class counts days before 15 October
1582 in the Julian calendar, but Spark reads the resulting date in the Gregorian calendar. A record
of the year 1 is therefore shifted by two days. Some years (1500, 1400, 1300, ...) have a 29
February only in the Julian calendar. This day cannot be distinguished from the day after it, so its
records remain one day late.
"""

from pyspark.sql import Column
from pyspark.sql import functions as f

GREGORIAN_FROM = "1582-10-15T00:00:00Z"
MICROS_PER_DAY = 86_400_000_000
EPOCH_AS_JULIAN_DAY = 2_440_588


def instant(timestamp: Column) -> Column:
    """The time of a record as its producer wrote it."""
    is_old = timestamp < f.lit(GREGORIAN_FROM).cast("timestamp")
    return f.when(is_old, _read_as_julian(timestamp)).otherwise(timestamp)


def _read_as_julian(timestamp: Column) -> Column:
    """The instant whose Julian date is the same as the Gregorian date of this timestamp."""
    year, month, day = f.year(timestamp), f.month(timestamp), f.day(timestamp)
    # Count years from March, so that a leap day is the last day of its year.
    months = f.pmod(month + f.lit(9), f.lit(12))
    years = year + f.lit(4800) - f.floor(months / f.lit(10))
    julian_day = (
        day
        + f.floor((f.lit(153) * months + f.lit(2)) / f.lit(5))
        + f.lit(365) * years
        + f.floor(years / f.lit(4))
        - f.lit(32_083)
    )
    micros = f.unix_micros(timestamp)
    in_day = f.pmod(micros, f.lit(MICROS_PER_DAY))
    days = (julian_day - f.lit(EPOCH_AS_JULIAN_DAY)).cast("bigint")
    return f.timestamp_micros(days * f.lit(MICROS_PER_DAY) + in_day)
