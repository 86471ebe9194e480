"""The lines of `tidelog perf`, with the numbers that Kafka's tools compute."""

import re

from tidelog.cli.output.perf_report import (
    MEGABYTE,
    ProducerStats,
    consumer_head,
    consumer_interval,
    consumer_total,
)


def test_the_total_has_rates_and_percentiles() -> None:
    stats = ProducerStats(started=1000)
    assert stats.sent(list(range(100)), MEGABYTE, 2000) is None
    assert stats.total(3000) == (
        "100 records sent, 50.000000 records/sec (0.50 MB/sec), 49.50 ms avg latency, "
        "99.00 ms max latency, 50 ms 50th, 95 ms 95th, 99 ms 99th, 99 ms 99.9th."
    )


def test_a_window_reports_only_its_own_records() -> None:
    stats = ProducerStats(started=0, report_ms=100, name=" steady state")
    first = stats.sent([10, 20], 2 * MEGABYTE, 1000)
    assert first == (
        "2 records sent, 2.0 records/sec (2.00 MB/sec), 15.0 ms avg latency, 20.0 ms max latency."
    )
    assert stats.sent([1], MEGABYTE, 1050) is None
    second = stats.sent([3], MEGABYTE, 1500)
    assert second == (
        "2 records sent, 4.0 records/sec (4.00 MB/sec), 2.0 ms avg latency, 3.0 ms max latency."
    )
    assert stats.total(1500).startswith("4 steady state records sent, ")


def test_the_consumer_reports_sums_and_rates() -> None:
    columns = len(consumer_head(detailed=False).split(", "))
    total = consumer_total(0, 2000, 2 * MEGABYTE, 10)
    assert len(total.split(", ")) == columns == 10
    assert total.split(", ")[2:] == [
        *("2.0000", "1.0000", "10", "5.0000", "0", "2000", "1.0000", "5.0000")
    ]
    assert re.fullmatch(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d:000", total.split(", ")[0])
    interval = consumer_interval(1000, 1500, 2 * MEGABYTE, 10, new_size=MEGABYTE, new_count=4)
    assert interval.split(", ")[1:] == [
        *("0", "2.0000", "2.0000", "10", "8.0000", "0", "500", "2.0000", "8.0000")
    ]
