"""The producer of `tidelog pipeline demo`: writes a shop's orders as JSON, keyed by customer."""

import json
import random
import time
from collections.abc import Iterator
from itertools import count
from typing import Any

from tidelog.cli.demos.writing import Writing
from tidelog.client.client import Client
from tidelog.client.ledger import Ledger
from tidelog.client.producer import ACKS_ALL, Producer
from tidelog.protocol.records.records import Record

BATCH = 25
PAUSE_SECONDS = 0.025
ANSWER_SECONDS = 5.0

_GOODS = (
    ("kettle", 3990),
    ("lamp", 5450),
    ("notebook", 480),
    ("teapot", 2795),
    ("umbrella", 1890),
    ("backpack", 6900),
    ("clock", 3350),
    ("mug", 1120),
)
_COUNTRIES = ("DE", "FR", "NL", "PL", "ES", "IT", "SE", "PT")
_CHANNELS = ("web", "web", "web", "app", "app", "shop")


def orders(dice: random.Random) -> Iterator[tuple[bytes, dict[str, Any]]]:
    """An endless stream of customers and orders. A few customers order often, others seldom."""
    for number in count(1):
        customer = int(dice.paretovariate(0.9)) % 5000
        chosen = [
            (item, min(int(dice.expovariate(0.9)) + 1, 9), price)
            for item, price in dice.sample(_GOODS, dice.choice((1, 1, 1, 2, 2, 3)))
        ]
        yield (
            b"customer-%d" % customer,
            {
                "order_id": number,
                "customer": customer,
                "country": _COUNTRIES[customer % len(_COUNTRIES)],
                "channel": dice.choice(_CHANNELS),
                "lines": [
                    {"item": item, "quantity": quantity, "price_cents": price}
                    for item, quantity, price in chosen
                ],
                "total_cents": sum(quantity * price for _, quantity, price in chosen),
            },
        )


class OrderLoad(Writing):
    """An idempotent acks=all producer that writes orders to a topic and lists them in a ledger."""

    def __init__(self, bootstrap: str, topic: str, ledger: str) -> None:
        super().__init__()
        self._bootstrap = bootstrap
        self._topic = topic
        self._ledger = ledger
        self.longest_wait_ms = 0
        """The longest time between two acknowledgements since this was last set to 0."""

    def write(self) -> None:
        made = orders(random.Random(7))
        with Client(self._bootstrap, ANSWER_SECONDS) as client, Ledger(self._ledger) as ledger:
            producer = Producer(
                client, self._topic, acks=ACKS_ALL, compression="none", ledger=ledger
            )
            last = time.monotonic()
            while self.goes_on:
                producer.send([_record(*next(made)) for _ in range(BATCH)], None)
                self.acknowledged += BATCH
                now = time.monotonic()
                self.longest_wait_ms = max(self.longest_wait_ms, round((now - last) * 1000))
                last = now
                time.sleep(PAUSE_SECONDS)


def _record(key: bytes, order: dict[str, Any]) -> Record:
    now = time.time_ns() // 1_000_000
    return Record(key, json.dumps({**order, "placed_at": now}).encode(), now)
