"""ListTransactions: the pattern of ids is an expression of RE2, as in Kafka."""

import pytest
from tests.sim.messages import ask
from tests.unit.node.bench import Bench

from tidelog.model.errors import ErrorCode

LIST_TRANSACTIONS = 66


@pytest.mark.parametrize(
    ("pattern", "error"),
    [
        ("orders-.*", ErrorCode.none),
        (None, ErrorCode.none),
        ("(", ErrorCode.invalid_regular_expression),
        ("(?=a)a", ErrorCode.invalid_regular_expression),
        (r"(a)\1", ErrorCode.invalid_regular_expression),
    ],
)
def test_f63_only_patterns_that_are_matched_in_linear_time_are_accepted(
    pattern: str | None, error: ErrorCode
) -> None:
    wish = ask(
        LIST_TRANSACTIONS,
        state_filters=(),
        producer_id_filters=(),
        duration_filter=-1,
        transactional_id_pattern=pattern,
    )

    assert Bench().ask(wish).error_code is error
