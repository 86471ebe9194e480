"""The errors for changes that the cluster refuses."""

import pytest

from tidelog.client import admin
from tidelog.model.errors import ErrorCode


def test_a_topic_that_exists_may_be_passed_over_and_no_other_refusal() -> None:
    with admin.topic_may_exist():
        raise admin.RequestRefused(ErrorCode.topic_already_exists, None)
    with pytest.raises(admin.RequestRefused, match="POLICY_VIOLATION"), admin.topic_may_exist():
        raise admin.RequestRefused(ErrorCode.policy_violation, None)
