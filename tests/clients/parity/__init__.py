"""Conversations that Apache Kafka and Tidelog must answer alike, one module per group of APIs."""

from collections.abc import Callable
from typing import NamedTuple

from tests.clients.talk import Talk


class Case(NamedTuple):
    api: str
    name: str
    run: Callable[[Talk], None]
    lowest: int
    highest: int


CASES: list[Case] = []


def case(
    api: str, lowest: int = 0, highest: int = 1 << 15
) -> Callable[[Callable[[Talk], None]], Callable[[Talk], None]]:
    """Register a conversation, to run in every version in this range that both systems support."""

    def register(run: Callable[[Talk], None]) -> Callable[[Talk], None]:
        CASES.append(Case(api, run.__name__, run, lowest, highest))
        return run

    return register
