"""Compares an answer of Apache Kafka with an answer of Tidelog."""

import difflib
import json
from typing import Any

UNKNOWN_SERVER_ERROR = -1


def agrees(kafka: Any, ours: Any) -> bool:
    """Whether the two answers are equal, apart from the three differences below.

    If Kafka answers UNKNOWN_SERVER_ERROR (an unexpected exception), Tidelog may answer with any
    error. Tidelog may send an error message where Kafka sends none. If a Produce fails, the log
    start offset may be -1 or 0, because Kafka's value depends on how far it processed the request.
    """
    if isinstance(kafka, dict) and isinstance(ours, dict):
        if kafka.keys() != ours.keys():
            return False
        failed = ours.get("errorCode", 0) != 0
        return all(
            (key == "errorCode" and kafka[key] == UNKNOWN_SERVER_ERROR and failed)
            or (key == "errorMessage" and kafka[key] is None)
            or (key == "logStartOffset" and failed and {kafka[key], ours[key]} <= {-1, 0})
            or agrees(kafka[key], ours[key])
            for key in kafka
        )
    if isinstance(kafka, list) and isinstance(ours, list):
        return len(kafka) == len(ours) and all(map(agrees, kafka, ours))
    return bool(kafka == ours)


def difference(expected: Any, got: Any) -> str:
    lines = (json.dumps(said, indent=1).splitlines() for said in (expected, got))
    return "\n".join(difflib.unified_diff(*lines, "Apache Kafka", "this broker", lineterm="", n=4))
