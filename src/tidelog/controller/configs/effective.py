"""The effective configuration: each value, its source, and the values that it overrides.

The sources, from highest to lowest precedence, are a value of the topic, a dynamic value of the
broker, a dynamic value for all brokers, a value in server.properties, and Kafka's default. A topic
key inherits from its synonyms, which are broker keys. Some synonyms have a different unit.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import IntEnum
from typing import NamedTuple

from tidelog.config.key import BadValue, ConfigKey, Value
from tidelog.config.keys.broker_keys import BROKER_KEYS
from tidelog.config.keys.topic_keys import SYNONYMS, TOPIC_KEYS, BrokerSynonym
from tidelog.config.settings import BrokerSettings
from tidelog.controller.image.image import (
    BROKER_RESOURCE,
    CLUSTER_DEFAULT,
    TOPIC_RESOURCE,
    ClusterImage,
)


class ConfigSource(IntEnum):
    """Kafka's ids, as DescribeConfigs and CreateTopics report them."""

    DYNAMIC_TOPIC_CONFIG = 1
    DYNAMIC_BROKER_CONFIG = 2
    DYNAMIC_DEFAULT_BROKER_CONFIG = 3
    STATIC_BROKER_CONFIG = 4
    DEFAULT_CONFIG = 5


class ConfigSynonym(NamedTuple):
    name: str
    text: str
    source: ConfigSource


@dataclass(frozen=True, slots=True)
class EffectiveConfig:
    key: ConfigKey
    value: Value
    source: ConfigSource
    synonyms: tuple[ConfigSynonym, ...] = ()
    """Every place that sets the value, highest precedence first, as DescribeConfigs lists them."""

    @property
    def text(self) -> str | None:
        """The value as Kafka formats it; None for a secret."""
        return None if self.key.is_sensitive else to_text(self.value)


def to_text(value: Value) -> str | None:
    match value:
        case None:
            return None
        case bool():
            return "true" if value else "false"
        case tuple():
            return ",".join(value)
        case _:
            return str(value)


class _Level(NamedTuple):
    source: ConfigSource
    values: Mapping[str, str]


def _levels(image: ClusterImage, settings: BrokerSettings) -> tuple[_Level, ...]:
    """The values set for this broker, for all brokers and in server.properties, in this order."""
    return (
        _Level(
            ConfigSource.DYNAMIC_BROKER_CONFIG,
            image.config(BROKER_RESOURCE, str(settings.node_id)),
        ),
        _Level(
            ConfigSource.DYNAMIC_DEFAULT_BROKER_CONFIG,
            image.config(BROKER_RESOURCE, CLUSTER_DEFAULT),
        ),
        _Level(ConfigSource.STATIC_BROKER_CONFIG, settings.raw),
    )


# -- Configurations of topics ----------------------------------------------------------------------


def topic_config(
    image: ClusterImage, settings: BrokerSettings, topic: str
) -> dict[str, EffectiveConfig]:
    """Every key of a topic, with its synonyms; the topic need not exist."""
    return config_of_topic(image, settings, image.config(TOPIC_RESOURCE, topic))


def config_of_topic(
    image: ClusterImage, settings: BrokerSettings, overrides: Mapping[str, str]
) -> dict[str, EffectiveConfig]:
    """Every key of a topic with these overrides."""
    levels = _levels(image, settings)
    return {
        key.name: _topic_entry(key, levels, overrides)
        for key in TOPIC_KEYS.values()
        if not key.internal or key.name in overrides
    }


def topic_value(image: ClusterImage, settings: BrokerSettings, topic: str, name: str) -> Value:
    """One value of a topic, without its source and synonyms."""
    key, overrides = TOPIC_KEYS[name], image.config(TOPIC_RESOURCE, topic)
    if name in overrides:
        return key.parse(overrides[name])
    return _inherited(key, _levels(image, settings))[0]


def topic_defaults(image: ClusterImage, settings: BrokerSettings) -> dict[str, Value]:
    """The values of a topic without overrides; `with_overrides` adds the overrides."""
    levels = _levels(image, settings)
    return {key.name: _inherited(key, levels)[0] for key in TOPIC_KEYS.values()}


def with_overrides(
    defaults: Mapping[str, Value], overrides: Mapping[str, str]
) -> Mapping[str, Value]:
    """The values of a topic with these overrides."""
    if not overrides:
        return defaults
    own = {name: TOPIC_KEYS[name].parse(text) for name, text in overrides.items()}
    return {**defaults, **own}


def _topic_entry(
    key: ConfigKey, levels: tuple[_Level, ...], overrides: Mapping[str, str]
) -> EffectiveConfig:
    synonyms = tuple(_listed_synonyms(SYNONYMS.get(key.name, ()), levels))
    if key.name not in overrides:
        value, source = _inherited(key, levels)
        return EffectiveConfig(key, value, source, synonyms)
    value = key.parse(overrides[key.name])
    own = ConfigSynonym(key.name, to_text(value) or "", ConfigSource.DYNAMIC_TOPIC_CONFIG)
    return EffectiveConfig(key, value, own.source, (own, *synonyms))


def _inherited(key: ConfigKey, levels: tuple[_Level, ...]) -> tuple[Value, ConfigSource]:
    synonyms = SYNONYMS.get(key.name, ())
    for level in levels:
        for synonym in synonyms:
            if synonym.name in level.values:
                value = _usable(synonym, level.values[synonym.name], key)
                if value is not None:
                    return value, level.source
    default = None if key.default is None else key.parse(key.default)
    return default, ConfigSource.DEFAULT_CONFIG


def _usable(synonym: BrokerSynonym, text: str, key: ConfigKey | None = None) -> Value:
    """The value of a broker key, in the unit of the topic key; None if the text is invalid."""
    try:
        value = BROKER_KEYS[synonym.name].parse(text)
        if synonym.factor != 1:
            assert isinstance(value, int)
            value = -1 if value < 0 else value * synonym.factor
        if key is not None and key.check is not None:
            key.check(key.name, value)
    except BadValue:
        return None
    return value


def _listed_synonyms(
    synonyms: tuple[BrokerSynonym, ...], levels: tuple[_Level, ...]
) -> Iterator[ConfigSynonym]:
    """The entries that Kafka lists, starting with the first entry of the preferred synonym."""
    listing = False
    for found in _mentions(synonyms, levels):
        listing = listing or found.name == synonyms[0].name
        if listing:
            yield found


def _mentions(
    synonyms: tuple[BrokerSynonym, ...], levels: tuple[_Level, ...]
) -> Iterator[ConfigSynonym]:
    for level in levels:
        for synonym in synonyms:
            if synonym.name in level.values:
                yield ConfigSynonym(synonym.name, level.values[synonym.name], level.source)
    for synonym in synonyms:
        default = BROKER_KEYS[synonym.name].default
        if default is not None:
            yield ConfigSynonym(synonym.name, default, ConfigSource.DEFAULT_CONFIG)


# -- Configurations of brokers ---------------------------------------------------------------------

_FAMILIES: Mapping[str, tuple[BrokerSynonym, ...]] = {
    synonyms[0].name: synonyms for synonyms in SYNONYMS.values() if len(synonyms) > 1
}
"""Groups of broker keys that set the same value in several units. The map key is the broker key
that takes precedence.
"""


def broker_config(image: ClusterImage, settings: BrokerSettings) -> dict[str, EffectiveConfig]:
    """Every key of this broker, with its synonyms."""
    levels = _levels(image, settings)
    return {
        key.name: _broker_entry(key, levels)
        for key in BROKER_KEYS.values()
        if not key.internal or any(key.name in level.values for level in levels)
    }


def broker_value(image: ClusterImage, settings: BrokerSettings, name: str) -> Value:
    """One value of this broker, without its source and synonyms."""
    return _broker_entry(BROKER_KEYS[name], _levels(image, settings)).value


def cluster_config(image: ClusterImage) -> dict[str, EffectiveConfig]:
    """The values that are set dynamically for all brokers."""
    source = ConfigSource.DYNAMIC_DEFAULT_BROKER_CONFIG
    level = _Level(source, image.config(BROKER_RESOURCE, CLUSTER_DEFAULT))
    return {
        name: EffectiveConfig(
            BROKER_KEYS[name],
            _usable(BrokerSynonym(name), text),
            source,
            (ConfigSynonym(name, text, source),),
        )
        for name, text in level.values.items()
        if name in BROKER_KEYS
    }


def _broker_entry(key: ConfigKey, levels: tuple[_Level, ...]) -> EffectiveConfig:
    family = _FAMILIES.get(key.name, (BrokerSynonym(key.name),))
    synonyms = tuple(_listed_synonyms(family, levels))
    for level in levels:
        if key.name in level.values:
            value = _usable(BrokerSynonym(key.name), level.values[key.name])
            if value is not None:
                return EffectiveConfig(key, value, level.source, synonyms)
    default = None if key.default is None else key.parse(key.default)
    return EffectiveConfig(key, default, ConfigSource.DEFAULT_CONFIG, synonyms)
