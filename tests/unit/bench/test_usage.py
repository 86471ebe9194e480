"""CPU time and memory are read from /proc."""

import os
import time

import pytest

from tidelog.bench.usage import SpanMeter, check_system, cpu_seconds, resident_mib


def test_a_busy_process_is_measured() -> None:
    check_system()
    meter = SpanMeter([os.getpid()])
    until = time.process_time() + 0.2
    while time.process_time() < until:
        pass
    span = meter.end()
    assert span.broker_cpu >= 0.1
    assert span.seconds >= span.broker_cpu / 2
    assert span.others >= 0


def test_memory_is_counted_for_all_processes() -> None:
    assert resident_mib([]) == 0
    assert resident_mib([os.getpid()]) > 1


def test_a_process_that_has_ended_is_an_error() -> None:
    with pytest.raises(FileNotFoundError):
        cpu_seconds([2**22 + 1])
