"""Kafka's keys of server.properties that Tidelog accepts without parsing their values.

Each key has one reason: Tidelog does not need the key, or does not support it yet.
"""

from collections.abc import Mapping
from typing import NamedTuple

from tidelog.config import reasons
from tidelog.config.key import ConfigScope, ConfigStatus, Support


class IgnoredKey(NamedTuple):
    name: str
    scope: ConfigScope
    support: Support

    @property
    def status(self) -> ConfigStatus:
        return self.support.status


_NAMES: Mapping[Support, str] = {
    reasons.THREADS: """
        background.threads
        group.coordinator.background.threads
        group.coordinator.threads
        num.io.threads
        num.network.threads
        num.recovery.threads.per.data.dir
        num.replica.alter.log.dirs.threads
        share.coordinator.threads
    """,
    reasons.PURGATORIES: """
        delete.records.purgatory.purge.interval.requests
        fetch.purgatory.purge.interval.requests
        producer.purgatory.purge.interval.requests
        share.fetch.purgatory.purge.interval.requests
    """,
    reasons.METRICS: """
        kafka.metrics.polling.interval.secs
        kafka.metrics.reporters
        metric.reporters
        metrics.num.samples
        metrics.recording.level
        metrics.sample.window.ms
    """,
    reasons.BATCHING: """
        group.coordinator.append.linger.ms
        group.coordinator.cached.buffer.max.bytes
        share.coordinator.append.linger.ms
        share.coordinator.cached.buffer.max.bytes
    """,
    reasons.LOADING: """
        share.coordinator.load.buffer.size
        transaction.state.log.load.buffer.size
    """,
    reasons.SOCKET_BUFFERS: """
        replica.socket.receive.buffer.bytes
    """,
    reasons.THROTTLE_WINDOWS: """
        alter.log.dirs.replication.quota.window.num
        alter.log.dirs.replication.quota.window.size.seconds
        replication.quota.window.num
        replication.quota.window.size.seconds
    """,
    reasons.CONTROLLER_REQUESTS: """
        controller.socket.timeout.ms
    """,
    reasons.EARLY_LISTENERS: """
        early.start.listeners
    """,
    reasons.KAFKA_TESTS: """
        internal.metadata.delete.delay.millis
        internal.metadata.log.segment.bytes
        internal.metadata.max.batch.size.in.bytes
        internal.metadata.max.fetch.size.in.bytes
    """,
    reasons.UNSTABLE_VERSIONS: """
        unstable.api.versions.enable
        unstable.feature.versions.enable
    """,
    reasons.CONTROLLER_TIMING: """
        controller.performance.always.log.threshold.ms
        controller.performance.sample.period.ms
    """,
    reasons.CLEANER: """
        log.cleaner.io.buffer.size
        log.cleaner.threads
    """,
    reasons.TIERED_STORAGE: """
        follower.fetch.last.tiered.offset.enable
        remote.fetch.max.wait.ms
        remote.list.offsets.request.timeout.ms
        remote.log.index.file.cache.total.size.bytes
        remote.log.index.file.cache.ttl.ms
        remote.log.manager.copier.thread.pool.size
        remote.log.manager.copy.max.bytes.per.second
        remote.log.manager.copy.quota.window.num
        remote.log.manager.copy.quota.window.size.seconds
        remote.log.manager.expiration.thread.pool.size
        remote.log.manager.fetch.max.bytes.per.second
        remote.log.manager.fetch.quota.window.num
        remote.log.manager.fetch.quota.window.size.seconds
        remote.log.manager.follower.thread.pool.size
        remote.log.manager.task.interval.ms
        remote.log.manager.task.retry.backoff.max.ms
        remote.log.manager.task.retry.backoff.ms
        remote.log.manager.task.retry.jitter
        remote.log.manager.thread.pool.size
        remote.log.metadata.custom.metadata.max.bytes
        remote.log.metadata.manager.class.name
        remote.log.metadata.manager.class.path
        remote.log.metadata.manager.impl.prefix
        remote.log.metadata.manager.listener.name
        remote.log.reader.max.pending.tasks
        remote.log.reader.threads
        remote.log.storage.manager.class.name
        remote.log.storage.manager.class.path
        remote.log.storage.manager.impl.prefix
        remote.log.storage.system.enable
    """,
    reasons.COMPRESSED_OFFSETS: """
        share.coordinator.state.topic.compression.codec
    """,
    reasons.SHARE_ASSIGNMENTS: """
        group.share.assignors
    """,
    reasons.SHARE_STATE: """
        group.share.enable
        group.share.initialize.retry.interval.ms
        group.share.persister.class.name
    """,
    reasons.STREAMS_GROUPS: """
        group.streams.assignment.interval.ms
        group.streams.heartbeat.interval.ms
        group.streams.initial.rebalance.delay.ms
        group.streams.max.assignment.interval.ms
        group.streams.max.heartbeat.interval.ms
        group.streams.max.session.timeout.ms
        group.streams.max.size
        group.streams.max.standby.replicas
        group.streams.min.assignment.interval.ms
        group.streams.min.heartbeat.interval.ms
        group.streams.min.session.timeout.ms
        group.streams.num.standby.replicas
        group.streams.session.timeout.ms
    """,
    reasons.TWO_PHASE_COMMIT: """
        transaction.two.phase.commit.enable
    """,
    reasons.AUTHENTICATION: """
        principal.builder.class
        sasl.client.callback.handler.class
        sasl.kerberos.kinit.cmd
        sasl.kerberos.min.time.before.relogin
        sasl.kerberos.principal.to.local.rules
        sasl.kerberos.service.name
        sasl.kerberos.ticket.renew.jitter
        sasl.kerberos.ticket.renew.window.factor
        sasl.login.callback.handler.class
        sasl.login.class
        sasl.login.connect.timeout.ms
        sasl.login.read.timeout.ms
        sasl.login.refresh.buffer.seconds
        sasl.login.refresh.min.period.seconds
        sasl.login.refresh.window.factor
        sasl.login.refresh.window.jitter
        sasl.login.retry.backoff.max.ms
        sasl.login.retry.backoff.ms
        sasl.oauthbearer.assertion.algorithm
        sasl.oauthbearer.assertion.claim.aud
        sasl.oauthbearer.assertion.claim.exp.seconds
        sasl.oauthbearer.assertion.claim.iss
        sasl.oauthbearer.assertion.claim.jti.include
        sasl.oauthbearer.assertion.claim.nbf.seconds
        sasl.oauthbearer.assertion.claim.sub
        sasl.oauthbearer.assertion.file
        sasl.oauthbearer.assertion.private.key.file
        sasl.oauthbearer.assertion.private.key.passphrase
        sasl.oauthbearer.assertion.template.file
        sasl.oauthbearer.client.credentials.client.id
        sasl.oauthbearer.client.credentials.client.secret
        sasl.oauthbearer.clock.skew.seconds
        sasl.oauthbearer.expected.audience
        sasl.oauthbearer.expected.issuer
        sasl.oauthbearer.jwks.endpoint.refresh.ms
        sasl.oauthbearer.jwks.endpoint.retry.backoff.max.ms
        sasl.oauthbearer.jwks.endpoint.retry.backoff.ms
        sasl.oauthbearer.jwks.endpoint.url
        sasl.oauthbearer.jwt.retriever.class
        sasl.oauthbearer.jwt.validator.class
        sasl.oauthbearer.scope
        sasl.oauthbearer.scope.claim.name
        sasl.oauthbearer.sub.claim.name
        sasl.oauthbearer.token.endpoint.url
        sasl.server.callback.handler.class
        sasl.server.max.receive.size
    """,
    reasons.ENCRYPTION: """
        security.providers
        ssl.allow.dn.changes
        ssl.allow.san.changes
        ssl.engine.factory.class
        ssl.keymanager.algorithm
        ssl.protocol
        ssl.provider
        ssl.secure.random.implementation
        ssl.trustmanager.algorithm
    """,
    reasons.DELEGATION_TOKENS: """
        delegation.token.expiry.check.interval.ms
        delegation.token.expiry.time.ms
        delegation.token.max.lifetime.ms
        delegation.token.secret.key
    """,
    reasons.CLIENT_QUOTAS: """
        client.quota.callback.class
        controller.quota.window.num
        controller.quota.window.size.seconds
        quota.window.num
        quota.window.size.seconds
    """,
    reasons.CLIENT_METRICS: """
        telemetry.max.bytes
    """,
    reasons.PLUGINS: """
        alter.config.policy.class.name
        config.providers
        create.topic.policy.class.name
    """,
    reasons.CONNECTION_RATES: """
        max.connection.creation.rate
    """,
    reasons.CONNECTION_SETUP: """
        socket.connection.setup.timeout.max.ms
        socket.connection.setup.timeout.ms
    """,
    reasons.QUORUM_FETCHES: """
        controller.quorum.fetch.max.bytes
        controller.quorum.fetch.snapshot.max.bytes
    """,
    reasons.QUORUM_AUTO_JOIN: """
        controller.quorum.auto.join.enable
    """,
    reasons.CORDONED_DIRECTORIES: """
        cordoned.log.dirs
    """,
    reasons.STARTUP_TIME: """
        server.max.startup.time.ms
    """,
    reasons.UNCLEAN_ELECTIONS: """
        unclean.leader.election.interval.ms
    """,
}

_CLUSTER_WIDE = frozenset(
    {
        "background.threads",
        "log.cleaner.io.buffer.size",
        "log.cleaner.threads",
        "max.connection.creation.rate",
        "metric.reporters",
        "num.io.threads",
        "num.network.threads",
        "num.recovery.threads.per.data.dir",
    }
)
"""The ignored keys that can be changed while brokers run; all others are static."""


def _ignored(name: str, support: Support) -> IgnoredKey:
    is_dynamic = name in _CLUSTER_WIDE
    return IgnoredKey(name, ConfigScope.CLUSTER_WIDE if is_dynamic else ConfigScope.STATIC, support)


IGNORED_KEYS: Mapping[str, IgnoredKey] = {
    name: _ignored(name, support) for support, names in _NAMES.items() for name in names.split()
}

IGNORED_PREFIXES: Mapping[str, Support] = {
    "listener.name.": reasons.LISTENER_OVERRIDES,
    "rlmm.config.": reasons.TIERED_STORAGE,
    "rsm.config.": reasons.TIERED_STORAGE,
}
"""Kafka also has keys with these prefixes: overrides per listener, and the keys of plug-ins."""
