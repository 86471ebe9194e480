"""Runs every test of the cleaner with both engines: plain Python, and numpy."""

from collections.abc import Iterator

import pytest
from tests.unit.log.cleaner import compacting

from tidelog.log.cleaner.cleaning_pass import CleanerLimits


@pytest.fixture(scope="module", params=["plain", "vectors"], autouse=True)
def engine(request: pytest.FixtureRequest) -> Iterator[str]:
    """The name of the engine that passes use."""
    before = compacting.LIMITS
    large_bytes = 0 if request.param == "vectors" else 1 << 60
    compacting.LIMITS = CleanerLimits(large_bytes=large_bytes)
    yield request.param
    compacting.LIMITS = before
