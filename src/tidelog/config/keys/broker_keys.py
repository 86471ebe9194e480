"""The keys of server.properties, with Kafka's defaults and limits.

This table also holds the keys of `log_keys`, `quorum_keys` and `coordinator_keys`. Keys that are
accepted without being parsed are in `ignored_keys`.
"""

from collections.abc import Mapping

from tidelog.config import reasons
from tidelog.config.checks import at_least, between, host_counts, one_of
from tidelog.config.key import (
    ConfigKey,
    ConfigScope,
    ConfigType,
    boolean,
    int32,
    int64,
    string,
    strings,
)
from tidelog.config.keys.coordinator_keys import GROUP_COORDINATOR_KEYS, TRANSACTION_KEYS
from tidelog.config.keys.ignored_keys import IGNORED_KEYS, IgnoredKey
from tidelog.config.keys.log_keys import LOG_KEYS
from tidelog.config.keys.quorum_keys import QUORUM_KEYS
from tidelog.config.keys.sasl_keys import SASL_KEYS
from tidelog.config.keys.security_keys import SECURITY_KEYS
from tidelog.config.keys.share_keys import SHARE_KEYS
from tidelog.config.keys.ssl_keys import SSL_KEYS

_MOST = (1 << 31) - 1
RACK_AWARE_SELECTOR = "org.apache.kafka.common.replica.RackAwareReplicaSelector"
LEADER_SELECTOR = "org.apache.kafka.common.replica.LeaderSelector"
CLUSTER_WIDE = ConfigScope.CLUSTER_WIDE

DEFAULT_SECURITY_MAP = "SASL_SSL:SASL_SSL,PLAINTEXT:PLAINTEXT,SSL:SSL,SASL_PLAINTEXT:SASL_PLAINTEXT"


def _throttled_rate(name: str, documentation: str) -> ConfigKey:
    """The key of a rate that is set per broker. DescribeConfigs hides the key unless it is set."""
    return ConfigKey(
        name,
        ConfigType.LONG,
        str((1 << 63) - 1),
        documentation,
        at_least(0),
        internal=True,
        scope=ConfigScope.PER_BROKER,
    )


_IDENTITY = (
    int32("node.id", None, "The id of the node, unique in the cluster.", at_least(0)),
    strings("process.roles", None, "The roles of the process: broker, controller, or both."),
    string("broker.rack", None, "The rack of this broker; replicas are spread over racks."),
    strings(
        "listeners",
        "PLAINTEXT://:9092",
        "The addresses on which the node listens: name://host:port, ...",
    ),
    strings(
        "advertised.listeners",
        None,
        "The addresses that clients get, if they differ from listeners.",
    ),
    string(
        "listener.security.protocol.map",
        DEFAULT_SECURITY_MAP,
        "The security protocol of each listener name; a listener can use PLAINTEXT only.",
    ),
    string(
        "inter.broker.listener.name",
        None,
        "The name of the listener for connections between brokers.",
    ),
    string(
        "security.inter.broker.protocol",
        "PLAINTEXT",
        "The security protocol between brokers, if inter.broker.listener.name is not set.",
        one_of("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL"),
    ),
    strings("controller.listener.names", None, "The names of the controller listeners."),
    strings("controller.quorum.voters", "", "The fixed voters of the quorum: id@host:port, ..."),
    strings(
        "controller.quorum.bootstrap.servers",
        "",
        "Addresses of controllers, to find the quorum: host:port, ...",
    ),
    strings("log.dir", "/tmp/kafka-logs", "The log directory, if log.dirs is not set."),
    strings("log.dirs", None, "The log directories, separated by commas."),
    string(
        "metadata.log.dir",
        None,
        "The directory of the metadata log; by default the first of log.dirs.",
    ),
)

_TOPICS = (
    int32(
        "num.partitions",
        1,
        "The number of partitions of a new topic, if the request does not give it.",
        at_least(1),
    ),
    int32(
        "default.replication.factor",
        1,
        "The replication factor of a new topic, if the request does not give it.",
    ),
    boolean(
        "auto.create.topics.enable",
        True,
        "Whether a Metadata request creates a topic that does not exist.",
    ),
    boolean("delete.topic.enable", True, "Whether topics may be deleted."),
    int32(
        "max.request.partition.size.limit",
        2000,
        "The maximum number of partitions in one DescribeTopicPartitions response.",
        at_least(1),
    ),
    boolean(
        "auto.leader.rebalance.enable",
        True,
        "Whether the controller moves leadership back to preferred replicas.",
    ),
    int64(
        "leader.imbalance.check.interval.seconds",
        300,
        "How often the controller moves leadership back to preferred replicas.",
        at_least(1),
    ),
)

_REPLICATION = (
    int64(
        "log.dir.failure.timeout.ms",
        30000,
        "A broker stops if it cannot report a failed log directory for this long.",
        at_least(1),
    ),
    _throttled_rate(
        "leader.replication.throttled.rate",
        "Bytes per second that a leader sends to throttled replicas.",
    ),
    _throttled_rate(
        "follower.replication.throttled.rate",
        "Bytes per second that a follower fetches for throttled replicas.",
    ),
    int64(
        "replica.lag.time.max.ms",
        30000,
        "A follower that has not caught up for this long leaves the ISR.",
    ),
    int32("replica.fetch.min.bytes", 1, "The bytes that a follower's fetch waits for."),
    int32(
        "replica.fetch.max.bytes",
        1048576,
        "The maximum number of bytes per partition in a follower's fetch.",
        at_least(0),
    ),
    int32("replica.fetch.wait.max.ms", 500, "The longest wait of a follower's fetch."),
    int32(
        "replica.fetch.response.max.bytes",
        10485760,
        "The maximum number of bytes in the response to a follower's fetch.",
        at_least(0),
    ),
    int32(
        "replica.fetch.backoff.ms",
        1000,
        "How long a follower waits after a failed fetch.",
        at_least(0),
        support=reasons.FOLLOWER_RETRIES,
    ),
    int32(
        "replica.socket.timeout.ms", 30000, "How long a follower waits for the response to a fetch."
    ),
    int32(
        "num.replica.fetchers",
        1,
        "The number of fetchers per leader.",
        scope=CLUSTER_WIDE,
        support=reasons.THREADS,
    ),
    int64(
        "replica.high.watermark.checkpoint.interval.ms",
        5000,
        "How often high watermarks are written to disk.",
    ),
    string(
        "replica.selector.class",
        None,
        "How the leader chooses the replica from which a consumer reads.",
        one_of(RACK_AWARE_SELECTOR, LEADER_SELECTOR),
    ),
    int32(
        "broker.heartbeat.interval.ms",
        2000,
        "How often a broker sends a heartbeat to the controller.",
    ),
    int32(
        "broker.session.timeout.ms",
        9000,
        "The controller fences a broker without a heartbeat for this long.",
    ),
    int32(
        "initial.broker.registration.timeout.ms",
        60000,
        "How long a broker waits for the response to its registration.",
    ),
    boolean(
        "controlled.shutdown.enable",
        True,
        "Whether a broker moves its leadership away before it stops.",
    ),
    int32("request.timeout.ms", 30000, "How long a node waits for the response to a request."),
)

_NETWORK = (
    int32("socket.request.max.bytes", 104857600, "The largest request.", at_least(1)),
    int32(
        "socket.listen.backlog.size",
        50,
        "The maximum number of connections that wait to be accepted. Tidelog uses at least 4096.",
        at_least(1),
    ),
    int32(
        "socket.receive.buffer.bytes",
        102400,
        "SO_RCVBUF of a socket; -1 is the system's default.",
        support=reasons.SOCKET_BUFFERS,
    ),
    int32(
        "socket.send.buffer.bytes",
        102400,
        "SO_SNDBUF of a socket; -1 is the system's default.",
        support=reasons.SOCKET_BUFFERS,
    ),
    int64("connections.max.idle.ms", 600000, "How long an idle connection stays open."),
    int32(
        "max.connections",
        _MOST,
        "The maximum number of connections of a broker.",
        at_least(0),
        scope=CLUSTER_WIDE,
    ),
    int32(
        "max.connections.per.ip",
        _MOST,
        "The maximum number of connections from one address.",
        at_least(0),
        scope=CLUSTER_WIDE,
    ),
    string(
        "max.connections.per.ip.overrides",
        "",
        "The maximum number of connections from single hosts or addresses: host:number, ...",
        host_counts,
        scope=CLUSTER_WIDE,
    ),
    int32(
        "fetch.max.bytes",
        57671680,
        "The maximum number of bytes in the response to a fetch.",
        at_least(1024),
    ),
    int32(
        "max.incremental.fetch.session.cache.slots",
        1000,
        "The maximum number of fetch sessions.",
        at_least(0),
    ),
    int64(
        "queued.max.request.bytes",
        -1,
        "The maximum number of bytes of waiting requests; -1 means no limit.",
        support=reasons.REQUEST_QUEUE,
    ),
    int32(
        "queued.max.requests",
        500,
        "The maximum number of waiting requests.",
        at_least(1),
        support=reasons.REQUEST_QUEUE,
    ),
)

_TIDELOG = (
    boolean(
        "tidelog.replication.events.enable",
        False,
        "Whether replication events are written to the topic __tidelog_replication_events.",
    ),
    int64(
        "tidelog.replication.events.interval.ms",
        5000,
        "How often the state of replicas is written there, if it has changed.",
        at_least(100),
    ),
    int32(
        "tidelog.metrics.port",
        None,
        "The port of the Prometheus metrics on the first listener's host; unset, none are served.",
        between(1, 65535),
    ),
)

BROKER_KEYS: Mapping[str, ConfigKey] = {
    key.name: key
    for family in (
        _IDENTITY,
        _TOPICS,
        LOG_KEYS,
        _REPLICATION,
        QUORUM_KEYS,
        GROUP_COORDINATOR_KEYS,
        SHARE_KEYS,
        TRANSACTION_KEYS,
        _NETWORK,
        SECURITY_KEYS,
        SASL_KEYS,
        SSL_KEYS,
        _TIDELOG,
    )
    for key in family
}
"""Every key that DescribeConfigs reports for a broker, in this order."""

_ACCEPTED: tuple[ConfigKey | IgnoredKey, ...] = (*BROKER_KEYS.values(), *IGNORED_KEYS.values())

DYNAMIC_KEYS = frozenset(key.name for key in _ACCEPTED if key.scope.is_dynamic_broker_scope)
"""Broker keys that can be changed while brokers run, per broker or for the whole cluster."""
