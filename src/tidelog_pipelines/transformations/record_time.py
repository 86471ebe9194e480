"""Corrects the timestamps that Spark's Kafka connector gives to records of long ago.

The connector converts by way of java.sql.Timestamp. That class counts days before 15 October 1582
in the Julian calendar, but Spark reads the resulting date in the Gregorian one: a record of the
year 1 is shifted by two days. The 29 February that only the Julian calendar has (of 1500, 1400,
1300, ...) cannot be told from the day after it, and remains one day late.
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
    """The instant whose date in the Julian calendar is the one that this timestamp shows."""
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
