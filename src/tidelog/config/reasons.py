"""Why a key is not enforced: one status and one reason for each group of such keys.

The reasons appear in docs/configuration.md. When a key becomes enforced, remove its reason.
"""

from tidelog.config.key import ConfigStatus, Support


def _no_effect(reason: str) -> Support:
    return Support(ConfigStatus.NO_EFFECT, reason)


def _not_yet(reason: str) -> Support:
    return Support(ConfigStatus.NOT_YET, reason)


# -- Kafka needs these keys, Tidelog does not ------------------------------------------------------

THREADS = _no_effect("One thread serves a node; the number of worker threads is fixed.")
PURGATORIES = _no_effect("A waiting request is removed when it is answered; nothing is purged.")
METRICS = _no_effect("Metrics are served to Prometheus at `tidelog.metrics.port`.")
BATCHING = _no_effect(
    "Records that arrive together are written together, without a delay or a cache."
)
LOADING = _no_effect("Coordinators load in small steps of a fixed size.")
BACKGROUND_TASKS = _no_effect(
    "The first run of a background task comes after one interval of the task."
)
PRODUCER_EXPIRATION = _no_effect("Expired producer ids are removed whenever retention runs.")
CLEANER = _no_effect("One log is compacted at a time, in slices of 1 MB.")
SOCKET_BUFFERS = _no_effect("The operating system sizes the socket buffers.")
REQUEST_QUEUE = _no_effect("The memory of waiting requests has a fixed limit.")
FOLLOWER_RETRIES = _no_effect("A follower retries after 50 ms, and less often after each failure.")
IDLE_METADATA = _no_effect("The metadata log needs no records while nothing changes.")
CONTROLLER_REQUESTS = _no_effect("`request.timeout.ms` limits requests to the controller.")
ASSIGNORS_AT_ONCE = _no_effect("A coordinator computes an assignment when it needs one.")
SHARE_STATE = _no_effect("The share coordinator is built in, and is enabled by `share.version`.")
EARLY_LISTENERS = _no_effect("The controller listeners always open first.")
KAFKA_TESTS = _no_effect("Apache Kafka uses this key in its own tests.")
UNSTABLE_VERSIONS = _no_effect("Tidelog serves no unstable versions.")
THROTTLE_WINDOWS = _no_effect("Throttles count bytes continuously, without sample windows.")
ENCRYPTION = _no_effect("OpenSSL does what this key configures in Java.")
CONTROLLER_TIMING = _no_effect("The controller does not sample the duration of its events.")

# -- Keys of features that Tidelog does not have yet -----------------------------------------------

COMPRESSED_OFFSETS = _not_yet("Coordinators write uncompressed batches.")
PREALLOCATION = _not_yet("Segment files grow as they are written.")
TIERED_STORAGE = _not_yet("Tiered storage is missing.")
SHARE_ASSIGNMENTS = _not_yet("Share groups have one assignor.")
STREAMS_GROUPS = _not_yet("Streams groups (KIP-1071) are missing.")
TWO_PHASE_COMMIT = _not_yet("Transactions that an external coordinator ends (KIP-939) are missing.")
AUTHENTICATION = _not_yet("Authentication is missing.")
DELEGATION_TOKENS = _not_yet("Delegation tokens are missing.")
CLIENT_QUOTAS = _not_yet("Client quotas are missing.")
CLIENT_METRICS = _not_yet("Client metrics (KIP-714) are missing.")
PLUGINS = _not_yet("Tidelog cannot load Java classes.")
CONNECTION_RATES = _not_yet("The rate of new connections has no limit.")
CONNECTION_SETUP = _not_yet("The time to open a connection has no limit of its own.")
LISTENER_OVERRIDES = _not_yet(
    "Of the keys per listener, `max.connections` and the keys of SASL and TLS are enforced."
)
QUORUM_FETCHES = _not_yet("The size of a fetch from the quorum is fixed.")
QUORUM_AUTO_JOIN = _not_yet("A controller joins the voters by AddRaftVoter only.")
METADATA_RETENTION = _not_yet("Only `metadata.max.retention.bytes` limits the metadata log.")
CORDONED_DIRECTORIES = _not_yet("Cordoned log directories (KIP-1066) are missing.")
STARTUP_TIME = _not_yet("The duration of a start has no limit.")
UNCLEAN_ELECTIONS = _not_yet("The controller looks for unclean elections every 5 seconds.")
