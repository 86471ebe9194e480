"""The settings of consumer groups, as the keys of the broker set them."""

from tidelog.config.group_checks import assignor_name
from tidelog.config.group_settings import ConsumerGroupSettings, MigrationPolicy
from tidelog.config.settings import BrokerSettings


def consumer_group_settings(settings: BrokerSettings) -> ConsumerGroupSettings:
    limits = {
        "consumer.session.timeout.ms": (
            settings.group_consumer_min_session_timeout_ms,
            settings.group_consumer_max_session_timeout_ms,
        ),
        "consumer.heartbeat.interval.ms": (
            settings.group_consumer_min_heartbeat_interval_ms,
            settings.group_consumer_max_heartbeat_interval_ms,
        ),
        "consumer.assignment.interval.ms": (
            settings.group_consumer_min_assignment_interval_ms,
            settings.group_consumer_max_assignment_interval_ms,
        ),
    }
    return ConsumerGroupSettings(
        session_timeout_ms=settings.group_consumer_session_timeout_ms,
        heartbeat_interval_ms=settings.group_consumer_heartbeat_interval_ms,
        assignment_interval_ms=settings.group_consumer_assignment_interval_ms,
        regex_refresh_interval_ms=settings.group_consumer_regex_refresh_interval_ms,
        max_size=settings.group_consumer_max_size,
        assignors=tuple(assignor_name(name) for name in settings.group_consumer_assignors),
        migration=MigrationPolicy(settings.group_consumer_migration_policy.lower()),
        classic_max_size=settings.group_max_size,
        limits=limits,
    )
