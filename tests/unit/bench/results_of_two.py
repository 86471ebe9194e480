"""Results of a benchmark of two systems, for tests of what is made of them."""

from tidelog.bench.measures import Better, Measure
from tidelog.bench.results import Results

LATENCY = Measure("ack p99, 1,000 requests/s", "ms")
THROUGHPUT = Measure("produce, records of 100 B", "MB/s", Better.HIGHER)


def results_of_two() -> Results:
    """Three repeats of a latency, and one throughput that only the first system has."""
    results = Results(("tidelog", "kafka"), {"date": "2026-11-18", "machine": "2 <cores>"})
    for mine, other in ((2.0, 4.0), (1.0, 8.0), (3.0, 5.0)):
        results.add("tidelog", LATENCY, mine, 0.01)
        results.add("kafka", LATENCY, other, 0.5)
    results.add("tidelog", THROUGHPUT, 1234.5, 0.0)
    return results
