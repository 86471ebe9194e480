"""Makes the simulator's client requests available to tests."""

from tidelog.sim.clients.messages import (
    answer_in,
    ask,
    batch,
    create_topic,
    delete_topic,
    fetch_from,
    frame_of,
    produce_to,
    records_in,
    version_for,
)

__all__ = [
    "answer_in",
    "ask",
    "batch",
    "create_topic",
    "delete_topic",
    "fetch_from",
    "frame_of",
    "produce_to",
    "records_in",
    "version_for",
]
