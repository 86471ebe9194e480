"""UpdateFeatures (key 57), versions 0-2 (KIP-584).

Raises or lowers feature levels. Either all changes of a request take effect, or none do. Every node
must support the new levels. Version 1 adds upgrade types and validate_only (KIP-778).
"""

from tidelog.api.handler import Handling, Request
from tidelog.model.effects import ChangeMetadata


def update_features(request: Request) -> Handling:
    """Sets feature levels for the whole cluster."""
    return (yield ChangeMetadata(request.message))
