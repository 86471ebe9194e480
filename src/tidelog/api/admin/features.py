"""UpdateFeatures (key 57), versions 0-2 (KIP-584).

Raises or lowers feature levels, all of a request or none. Every node must support a level. Upgrade
types and validate_only since version 1 (KIP-778).
"""

from tidelog.api.handler import Handling, Request
from tidelog.model.effects import ChangeMetadata


def update_features(request: Request) -> Handling:
    """Sets feature levels for the whole cluster."""
    return (yield ChangeMetadata(request.message))
