"""Differing ranges of offsets are merged before they are read again."""

from pyspark.sql import Row

from tidelog_pipelines.transformations.range_digests import RANGE, Stretch, stretches


def test_ranges_that_follow_each_other_are_one_stretch() -> None:
    ranges = [
        Row(topic="t", partition=0, range=2 * RANGE),
        Row(topic="t", partition=1, range=RANGE),
        Row(topic="t", partition=0, range=0),
        Row(topic="t", partition=0, range=RANGE),
        Row(topic="t", partition=0, range=5 * RANGE),
        Row(topic="t", partition=0, range=None),
    ]

    assert stretches(ranges) == [
        Stretch("t", 0, 0, 3 * RANGE),
        Stretch("t", 0, 5 * RANGE, 6 * RANGE),
        Stretch("t", 1, RANGE, 2 * RANGE),
    ]
