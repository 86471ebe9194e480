"""The content of server.properties as typed values, which do not change while the node runs.

Most fields have the name of Kafka's key, with underscores instead of dots: `num_partitions` is
num.partitions. A key has a field only if another package reads it, and a test checks this. Listener
and voter addresses are parsed too. The effective configuration of a topic also depends on the
image; `controller/configs/effective.py` computes it.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any

from tidelog.config.addresses import (
    SECURITY_PROTOCOLS,
    BadSetting,
    Listener,
    VoterAddress,
    parse_address,
    parse_listeners,
    parse_security_map,
    parse_voters,
)
from tidelog.config.key import BadValue, Value
from tidelog.config.keys.broker_keys import BROKER_KEYS
from tidelog.config.keys.ignored_keys import IGNORED_KEYS, IGNORED_PREFIXES
from tidelog.config.properties import parse_properties
from tidelog.config.sasl_checks import check_listeners
from tidelog.config.setting_checks import check_together
from tidelog.config.tls_settings import TlsSettings, all_tls_settings, check_own_listeners
from tidelog.model.ids import NodeId

__all__ = ["BadSetting", "BrokerSettings", "Listener", "VoterAddress", "parse_properties"]

_ROLES = ("broker", "controller")


@dataclass(frozen=True, slots=True, kw_only=True)
class BrokerSettings:
    # Identity and addresses
    node_id: NodeId
    is_broker: bool
    is_controller: bool
    listeners: tuple[Listener, ...]
    advertised_listeners: tuple[Listener, ...]
    inter_broker_listener_name: str
    controller_listener_names: tuple[str, ...]
    controller_quorum_voters: tuple[VoterAddress, ...]
    controller_quorum_bootstrap_servers: tuple[tuple[str, int], ...]
    log_dirs: tuple[str, ...]
    metadata_log_dir: str
    broker_rack: str | None

    # Topics and the balance of their leaders
    num_partitions: int
    default_replication_factor: int
    min_insync_replicas: int
    auto_create_topics_enable: bool
    delete_topic_enable: bool
    auto_leader_rebalance_enable: bool
    leader_imbalance_check_interval_seconds: int
    max_request_partition_size_limit: int

    # Maintenance of logs
    log_cleaner_enable: bool
    log_retention_check_interval_ms: int
    log_flush_offset_checkpoint_interval_ms: int
    log_flush_start_offset_checkpoint_interval_ms: int
    producer_id_expiration_ms: int

    # Replication and broker life
    replica_lag_time_max_ms: int
    log_dir_failure_timeout_ms: int
    replica_fetch_min_bytes: int
    replica_fetch_max_bytes: int
    replica_fetch_wait_max_ms: int
    replica_fetch_response_max_bytes: int
    replica_socket_timeout_ms: int
    replica_high_watermark_checkpoint_interval_ms: int
    replica_selector_class: str | None
    broker_heartbeat_interval_ms: int
    broker_session_timeout_ms: int
    initial_broker_registration_timeout_ms: int
    controlled_shutdown_enable: bool
    request_timeout_ms: int

    # The metadata quorum and its log
    controller_quorum_election_backoff_max_ms: int
    controller_quorum_election_timeout_ms: int
    controller_quorum_fetch_timeout_ms: int
    controller_quorum_request_timeout_ms: int
    controller_quorum_retry_backoff_ms: int
    metadata_log_segment_bytes: int
    metadata_log_segment_ms: int
    metadata_max_retention_bytes: int
    metadata_log_max_record_bytes_between_snapshots: int
    metadata_log_max_snapshot_interval_ms: int

    # Groups, offsets and transactions
    group_min_session_timeout_ms: int
    group_max_session_timeout_ms: int
    group_initial_rebalance_delay_ms: int
    group_max_size: int
    group_coordinator_rebalance_protocols: tuple[str, ...]
    group_consumer_session_timeout_ms: int
    group_consumer_heartbeat_interval_ms: int
    group_consumer_max_size: int
    group_consumer_assignors: tuple[str, ...]
    group_consumer_migration_policy: str
    group_consumer_assignment_interval_ms: int
    group_consumer_min_assignment_interval_ms: int
    group_consumer_max_assignment_interval_ms: int
    group_consumer_regex_refresh_interval_ms: int
    group_consumer_min_session_timeout_ms: int
    group_consumer_max_session_timeout_ms: int
    group_consumer_min_heartbeat_interval_ms: int
    group_consumer_max_heartbeat_interval_ms: int
    offset_metadata_max_bytes: int
    offsets_commit_timeout_ms: int
    offsets_retention_check_interval_ms: int
    offsets_retention_minutes: int
    offsets_topic_num_partitions: int
    offsets_topic_replication_factor: int
    offsets_topic_segment_bytes: int
    transactional_id_expiration_ms: int
    transaction_max_timeout_ms: int
    transaction_abort_timed_out_transaction_cleanup_interval_ms: int
    transaction_remove_expired_transaction_cleanup_interval_ms: int
    add_partitions_to_txn_retry_backoff_ms: int
    add_partitions_to_txn_retry_backoff_max_ms: int
    transaction_state_log_num_partitions: int
    transaction_state_log_replication_factor: int
    transaction_state_log_min_isr: int
    transaction_state_log_segment_bytes: int

    # Share groups
    group_share_session_timeout_ms: int
    group_share_min_session_timeout_ms: int
    group_share_max_session_timeout_ms: int
    group_share_heartbeat_interval_ms: int
    group_share_min_heartbeat_interval_ms: int
    group_share_max_heartbeat_interval_ms: int
    group_share_assignment_interval_ms: int
    group_share_max_size: int
    group_share_max_share_sessions: int
    group_share_min_assignment_interval_ms: int
    group_share_max_assignment_interval_ms: int
    group_share_record_lock_duration_ms: int
    group_share_min_record_lock_duration_ms: int
    group_share_max_record_lock_duration_ms: int
    group_share_delivery_count_limit: int
    group_share_min_delivery_count_limit: int
    group_share_max_delivery_count_limit: int
    group_share_partition_max_record_locks: int
    group_share_min_partition_max_record_locks: int
    group_share_max_partition_max_record_locks: int
    share_coordinator_state_topic_num_partitions: int
    share_coordinator_state_topic_replication_factor: int
    share_coordinator_state_topic_min_isr: int
    share_coordinator_state_topic_segment_bytes: int
    share_coordinator_snapshot_update_records_per_snapshot: int
    share_coordinator_cold_partition_snapshot_interval_ms: int
    share_coordinator_state_topic_prune_interval_ms: int
    share_coordinator_write_timeout_ms: int

    # Connections and fetch requests
    socket_request_max_bytes: int
    socket_listen_backlog_size: int
    connections_max_idle_ms: int
    fetch_max_bytes: int
    max_incremental_fetch_session_cache_slots: int

    # Security
    authorizer_class_name: str
    super_users: str
    allow_everyone_if_no_acl_found: bool
    connection_failed_authentication_delay_ms: int
    sasl_mechanism_inter_broker_protocol: str
    sasl_mechanism_controller_protocol: str
    security_protocols: Mapping[str, int]
    """The security protocol of each listener name, also of listeners of other nodes."""
    tls_listeners: Mapping[str, TlsSettings]
    """The encrypted listeners of this node."""
    tls_peers: Mapping[str, TlsSettings]
    """The encrypted listeners of other nodes, to which this node connects."""

    # Keys that only Tidelog has
    tidelog_replication_events_enable: bool
    tidelog_replication_events_interval_ms: int
    tidelog_metrics_port: int | None

    raw: Mapping[str, str] = field(default_factory=dict, repr=False)
    """The keys of the file, with their values as text, of which some are passwords."""
    warnings: tuple[str, ...] = ()
    """Messages about unknown keys."""

    @classmethod
    def from_properties(
        cls, properties: Mapping[str, str], host_name: str = "localhost"
    ) -> "BrokerSettings":
        """Parse and check the settings; raise `BadSetting` for the first invalid one.

        If a listener has no host, `host_name` is advertised to clients.
        """
        given = _with_broker_id(properties)
        values = _parse_all(given)
        plain = {
            name: values[key]
            for name in (item.name for item in fields(cls))
            if (key := name.replace("_", ".")) in values
        }
        structured = _identity(values) | _addresses(values, given, host_name)
        settings: Any = {
            **plain,
            **structured,
            "raw": dict(properties),
            "warnings": tuple(_warnings(given)),
        }
        made = cls(**settings)
        check_together(made, values)
        return made


def _with_broker_id(properties: Mapping[str, str]) -> dict[str, str]:
    """Accept broker.id, the old name of node.id."""
    given = dict(properties)
    old = given.pop("broker.id", None)
    if old is not None and given.setdefault("node.id", old).strip() != old.strip():
        raise BadSetting("broker.id", "it differs from node.id; keep node.id only")
    return given


def _parse_all(given: Mapping[str, str]) -> dict[str, Value]:
    values: dict[str, Value] = {}
    for key in BROKER_KEYS.values():
        if key.name not in given:
            values[key.name] = None if key.default is None else key.parse(key.default)
            continue
        try:
            values[key.name] = key.parse(given[key.name])
        except BadValue as refused:
            text = given[key.name].strip()
            raise BadSetting(key.name, f"{text!r} is not usable: {refused.reason}") from None
    return values


def _warnings(given: Mapping[str, str]) -> list[str]:
    warnings: list[str] = []
    for key in given:
        if key in BROKER_KEYS or key in IGNORED_KEYS:
            continue
        if not key.startswith(tuple(IGNORED_PREFIXES)):
            warnings.append(f"{key}: this key is not known and has no effect")
    return warnings


def _identity(values: Mapping[str, Any]) -> dict[str, Any]:
    if values["node.id"] is None:
        raise BadSetting("node.id", "it must be set to this node's number, 0 or more")
    roles = tuple(dict.fromkeys(values["process.roles"] or ()))
    if not roles or any(role not in _ROLES for role in roles):
        raise BadSetting("process.roles", "it must be broker, controller, or broker,controller")
    log_dirs = tuple(filter(None, values["log.dirs"] or values["log.dir"]))
    if not log_dirs:
        raise BadSetting("log.dirs", "at least one directory is needed")
    return {
        "is_broker": "broker" in roles,
        "is_controller": "controller" in roles,
        "log_dirs": log_dirs,
        "metadata_log_dir": values["metadata.log.dir"] or log_dirs[0],
    }


def _addresses(
    values: Mapping[str, Any], given: Mapping[str, str], host_name: str
) -> dict[str, Any]:
    protocols = parse_security_map(
        "listener.security.protocol.map", values["listener.security.protocol.map"]
    )
    controller_names = tuple(
        name.upper() for name in values["controller.listener.names"] or () if name
    )
    for name in controller_names:
        protocols.setdefault(name, SECURITY_PROTOCOLS.get(name, 0))
    listeners = parse_listeners("listeners", values["listeners"], protocols)
    if not listeners:
        raise BadSetting("listeners", "at least one is needed, such as PLAINTEXT://:9092")
    check_listeners(listeners, given)
    tls_listeners = all_tls_settings((one.name for one in listeners), protocols, given)
    check_own_listeners(tls_listeners)
    inter_broker = _inter_broker_name(values, given)
    protocols.setdefault(inter_broker, SECURITY_PROTOCOLS.get(inter_broker, 0))
    advertised_items = values["advertised.listeners"]
    advertised = (
        tuple(listener for listener in listeners if listener.name not in controller_names)
        if advertised_items is None
        else parse_listeners("advertised.listeners", advertised_items, protocols)
    )
    return {
        "security_protocols": protocols,
        "listeners": listeners,
        "advertised_listeners": tuple(_reachable(one, host_name) for one in advertised),
        "inter_broker_listener_name": inter_broker,
        "tls_listeners": tls_listeners,
        "tls_peers": all_tls_settings(
            dict.fromkeys((*controller_names[:1], inter_broker)), protocols, given
        ),
        "controller_listener_names": controller_names,
        "controller_quorum_voters": parse_voters(
            "controller.quorum.voters", values["controller.quorum.voters"]
        ),
        "controller_quorum_bootstrap_servers": tuple(
            parse_address("controller.quorum.bootstrap.servers", server)
            for server in values["controller.quorum.bootstrap.servers"]
            if server
        ),
    }


def _reachable(listener: Listener, host_name: str) -> Listener:
    if listener.host in ("0.0.0.0", "::"):
        raise BadSetting(
            "advertised.listeners",
            f"{listener.host} is not an address that clients can reach; name a host",
        )
    return listener._replace(host=listener.host or host_name)


def _inter_broker_name(values: Mapping[str, Any], given: Mapping[str, str]) -> str:
    named = values["inter.broker.listener.name"]
    if named is not None:
        if "security.inter.broker.protocol" in given:
            raise BadSetting(
                "inter.broker.listener.name",
                "set either this or security.inter.broker.protocol, not both",
            )
        return str(named).upper()
    return str(values["security.inter.broker.protocol"])
