"""No request makes a handler fail: every request gets an answer."""

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.unit.api.any_message import message
from tests.unit.api.round_trip import handle

from tidelog.api.registry import REGISTRY, Api
from tidelog.protocol.messages.schema import request_class


@pytest.mark.parametrize("api", REGISTRY.values(), ids=lambda api: api.name)
@settings(max_examples=30, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(data=st.data())
def test_any_request_is_answered(api: Api, data: st.DataObject):
    version = data.draw(st.integers(api.min_version, api.max_version))

    handle(api, version, data.draw(message(request_class(api.key, version))))
