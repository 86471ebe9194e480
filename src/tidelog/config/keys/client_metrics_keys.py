"""The keys of a client metrics subscription (KIP-714), set dynamically on the subscription."""

from collections.abc import Mapping
from dataclasses import replace

from tidelog.config import reasons
from tidelog.config.key import ConfigKey, ConfigScope, int32, strings

_KEYS = (
    int32("interval.ms", 300000, "How often a client sends its metrics."),
    strings("match", "", "The clients that send metrics: patterns over their attributes."),
    strings("metrics", "", "The metrics to send, by prefixes of their names."),
)

CLIENT_METRICS_KEYS: Mapping[str, ConfigKey] = {
    key.name: replace(key, scope=ConfigScope.PER_SUBSCRIPTION, support=reasons.CLIENT_METRICS)
    for key in _KEYS
}
