"""ListConfigResources (key 74), versions 0-1.

Lists the resources that may have configurations. A request may restrict the list to some types
(KIP-1142). Version 0 was named ListClientMetricsResources and lists only client metrics (KIP-1000).
An unknown type gets UNSUPPORTED_VERSION.
"""

import re
from datetime import timedelta

from kio.schema.list_config_resources.v1.response import (
    ConfigResource,
    ListConfigResourcesResponse,
)

from tidelog.api.handler import Request
from tidelog.config.resource_type import ResourceType
from tidelog.model.errors import ErrorCode

_NODE_ID = re.compile(r"[+-]?[0-9]{1,10}", re.ASCII)


RESOURCE_TYPES = frozenset(ResourceType)


def is_node_id(name: str) -> bool:
    return _NODE_ID.fullmatch(name) is not None


def handle(request: Request) -> ListConfigResourcesResponse:
    """Lists the resources that have configurations."""
    if request.version == 0:
        wanted = [ResourceType.CLIENT_METRICS]
    else:
        wanted = list(request.message.resource_types or ResourceType)
    known = RESOURCE_TYPES.issuperset(wanted)
    return ListConfigResourcesResponse(
        throttle_time=timedelta(0),
        error_code=ErrorCode.none if known else ErrorCode.unsupported_version,
        config_resources=tuple(
            ConfigResource(resource_name=name, resource_type=type_)
            for type_ in dict.fromkeys(wanted if known else ())
            for name in _names(type_, request)
        ),
    )


def _names(resource_type: int, request: Request) -> list[str]:
    image = request.image
    match resource_type:
        case ResourceType.TOPIC:
            return sorted(image.topics)
        case ResourceType.BROKER | ResourceType.BROKER_LOGGER:
            return [str(id_) for id_ in sorted(image.brokers)]
        case _:
            return sorted(name for type_, name in image.configs if type_ == resource_type)
