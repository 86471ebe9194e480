"""BrokerRegistration, BrokerHeartbeat, UnregisterBroker and ControllerRegistration.

A newly registered broker is fenced, and each run of its process gets a new broker epoch. The broker
is unfenced once it has read the metadata log up to its own registration. It is fenced again when
its session expires or when its controlled shutdown completes.
"""

from collections.abc import Iterable

from kio.schema.broker_heartbeat.v2.response import BrokerHeartbeatResponse
from kio.schema.broker_registration.v4.request import BrokerRegistrationRequest
from kio.schema.broker_registration.v4.response import BrokerRegistrationResponse
from kio.schema.controller_registration.v0.request import ControllerRegistrationRequest
from kio.schema.controller_registration.v0.response import ControllerRegistrationResponse
from kio.schema.unregister_broker.v0.request import UnregisterBrokerRequest
from kio.schema.unregister_broker.v0.response import UnregisterBrokerResponse

from tidelog.controller.decide import elections
from tidelog.controller.decide.decision import NOT_THROTTLED, DecideContext, Decision, Refusal
from tidelog.controller.decide.quorum_topics import holds_quorum_partition
from tidelog.controller.features import COMMIT_RULES, METADATA_VERSION, elr_enabled
from tidelog.controller.image.image import (
    FIRST_FREE_DIRECTORY,
    BrokerImage,
    ClusterImage,
    VersionRange,
)
from tidelog.model.errors import ErrorCode
from tidelog.model.ids import NO_OFFSET, BrokerEpoch
from tidelog.protocol.messages.broker_heartbeat import BrokerHeartbeatRequest
from tidelog.protocol.metadata.metadata_records import (
    EndPoint,
    Feature,
    MetadataRecord,
    RegisterBrokerRecord,
    RegisterControllerRecord,
    UnregisterBrokerRecord,
)

# -- Registration ----------------------------------------------------------------------------------


def register_broker(
    image: ClusterImage, request: BrokerRegistrationRequest, context: DecideContext
) -> Decision:
    """Register a broker process and assign its broker epoch."""
    fault = _check_registration(image, request, context)
    if fault is not None:
        return Decision((), _registered(fault.error, -1))
    existing = image.brokers.get(request.broker_id)
    if existing is not None and existing.incarnation == request.incarnation_id:
        # The same process registers again, because the response was lost or its listeners changed.
        record = _registration(request, existing.epoch, existing)
        return Decision((record,), _registered(ErrorCode.none, existing.epoch))
    epoch = context.next_offset
    records: list[MetadataRecord] = [_registration(request, epoch, None)]
    if existing is not None:
        records += _end_of_run(image, existing, request, context)
    return Decision(tuple(records), _registered(ErrorCode.none, epoch))


def _end_of_run(
    image: ClusterImage,
    existing: BrokerImage,
    request: BrokerRegistrationRequest,
    context: DecideContext,
) -> Iterable[MetadataRecord]:
    """Remove a restarted broker from the in-sync sets. If its logs may have lost records, remove it
    from the eligible leader replicas as well."""
    # A clean shutdown counts only if the broker still has all its directories.
    has_lost_none = set(existing.directories) <= set(request.log_dirs)
    clean = request.previous_broker_epoch == existing.epoch and has_lost_none
    if elr_enabled(image) and not clean:
        return elections.shut_down_uncleanly(image, existing.id, context)
    return elections.leave_isrs(image, existing.id, context)


def _check_registration(
    image: ClusterImage, request: BrokerRegistrationRequest, context: DecideContext
) -> Refusal | None:
    if request.cluster_id != image.cluster_id:
        return Refusal(ErrorCode.inconsistent_cluster_id)
    existing = image.brokers.get(request.broker_id)
    if (
        existing is not None
        and existing.incarnation != request.incarnation_id
        and context.sessions.is_live(existing.id, context.now)
        and not _holds_the_same_disks(existing, request)
    ):
        return Refusal(ErrorCode.duplicate_broker_registration)
    if request.is_migrating_zk_broker:
        return Refusal(ErrorCode.broker_id_not_registered)
    if request.incarnation_id is None or not _are_own_directories(image, request):
        return Refusal(ErrorCode.invalid_registration)
    return _check_features(image, request) or _check_commit_rules(image, request)


def _holds_the_same_disks(existing: BrokerImage, request: BrokerRegistrationRequest) -> bool:
    """Whether the new process has a log directory of the old process.

    A process locks its log directories, so the old process must have ended. A broker that restarts
    after a kill can therefore register before its old session expires.
    """
    return not set(existing.directories).isdisjoint(request.log_dirs)


def _are_own_directories(image: ClusterImage, request: BrokerRegistrationRequest) -> bool:
    directories = request.log_dirs
    if not directories or len(set(directories)) != len(directories):
        return False
    if any(one is None or one.int < FIRST_FREE_DIRECTORY for one in directories):
        return False
    others = (broker for broker in image.brokers.values() if broker.id != request.broker_id)
    return not any(set(directories) & set(broker.directories) for broker in others)


def _check_features(image: ClusterImage, request: BrokerRegistrationRequest) -> Refusal | None:
    offered = {
        feature.name: VersionRange(feature.min_supported_version, feature.max_supported_version)
        for feature in request.features
    }
    if METADATA_VERSION not in offered:
        return Refusal(ErrorCode.invalid_registration)
    for name, level in image.features.items():
        supported = offered.get(name, VersionRange(0, 0))
        if not supported.minimum <= level <= supported.maximum:
            return Refusal(ErrorCode.unsupported_version)
    return None


def _check_commit_rules(image: ClusterImage, request: BrokerRegistrationRequest) -> Refusal | None:
    """A broker that has partitions under the quorum rule must know the rule."""
    is_able = any(feature.name == COMMIT_RULES for feature in request.features)
    if is_able or not holds_quorum_partition(image, request.broker_id):
        return None
    return Refusal(ErrorCode.unsupported_version)


def _registration(
    request: BrokerRegistrationRequest, epoch: BrokerEpoch, again: BrokerImage | None
) -> RegisterBrokerRecord:
    assert request.incarnation_id is not None
    return RegisterBrokerRecord(
        broker_id=request.broker_id,
        incarnation_id=request.incarnation_id,
        broker_epoch=epoch,
        end_points=tuple(
            EndPoint(
                name=listener.name,
                host=listener.host,
                port=listener.port,
                security_protocol=listener.security_protocol,
            )
            for listener in request.listeners
        ),
        features=tuple(
            Feature(
                name=feature.name,
                min_supported_version=feature.min_supported_version,
                max_supported_version=feature.max_supported_version,
            )
            for feature in request.features
        ),
        rack=request.rack,
        fenced=again.fenced if again is not None else True,
        in_controlled_shutdown=again.in_controlled_shutdown if again is not None else False,
        log_dirs=tuple(directory for directory in request.log_dirs if directory is not None),
    )


def _registered(error: ErrorCode, epoch: BrokerEpoch) -> BrokerRegistrationResponse:
    return BrokerRegistrationResponse(
        throttle_time=NOT_THROTTLED, error_code=error, broker_epoch=epoch
    )


# -- Heartbeats ------------------------------------------------------------------------------------


def heartbeat(
    image: ClusterImage, request: BrokerHeartbeatRequest, context: DecideContext
) -> Decision:
    """Renew a broker's session, and fence, unfence or shut down the broker as it requests."""
    broker = image.brokers.get(request.broker_id)
    if broker is None or broker.epoch != request.broker_epoch:
        return Decision((), _heard(ErrorCode.stale_broker_epoch))
    is_caught_up = request.current_metadata_offset >= broker.epoch
    records: list[MetadataRecord] = []
    is_fenced, should_shut_down = broker.fenced, False
    if broker.fenced:
        if request.want_shut_down or broker.in_controlled_shutdown:
            # A fenced broker that has begun to shut down stays fenced. Its next process registers
            # again.
            should_shut_down = True
        elif not request.want_fence and is_caught_up:
            is_fenced = False
            records += elections.unfence(image, broker, context)
    elif request.want_fence:
        is_fenced, should_shut_down = True, request.want_shut_down
        records += elections.fence(image, broker, context)
    elif request.want_shut_down:
        if _may_stop(image, broker, context):
            is_fenced = should_shut_down = True
            records += elections.fence(image, broker, context)
        elif not broker.in_controlled_shutdown:
            records += elections.begin_shutdown(image, broker, context)
    lost = frozenset(one for one in request.offline_log_dirs if one is not None)
    if lost and not records:
        records += elections.lose_directories(image, broker, lost, context)
    if request.log_ends and not records:
        reported = [
            (one.topic_id, one.partition_index)
            for one in request.log_ends
            if one.topic_id is not None
        ]
        records += elections.elect_by_log_ends(image, reported, context)
    return Decision(
        tuple(records),
        _heard(
            ErrorCode.none,
            is_caught_up=is_caught_up,
            is_fenced=is_fenced,
            should_shut_down=should_shut_down,
        ),
    )


def _may_stop(image: ClusterImage, broker: BrokerImage, context: DecideContext) -> bool:
    """Whether the broker leads no partition, and every active broker knows about its shutdown."""
    if elections.leads_anything(image, broker.id):
        return False
    if broker.shutdown_offset == NO_OFFSET:
        return True
    return all(
        context.sessions.metadata_offset(other.id) >= broker.shutdown_offset
        for other in image.brokers.values()
        if other.is_active
    )


def _heard(
    error: ErrorCode,
    *,
    is_caught_up: bool = False,
    is_fenced: bool = True,
    should_shut_down: bool = False,
) -> BrokerHeartbeatResponse:
    return BrokerHeartbeatResponse(
        throttle_time=NOT_THROTTLED,
        error_code=error,
        is_caught_up=is_caught_up,
        is_fenced=is_fenced,
        should_shut_down=should_shut_down,
    )


# -- Unregistration of brokers, registration of controllers ----------------------------------------


def unregister_broker(
    image: ClusterImage, request: UnregisterBrokerRequest, context: DecideContext
) -> Decision:
    """Remove the registration of a broker that will not return."""
    broker = image.brokers.get(request.broker_id)
    if broker is None:
        return Decision(
            (),
            UnregisterBrokerResponse(
                throttle_time=NOT_THROTTLED,
                error_code=ErrorCode.broker_id_not_registered,
                error_message=f"Broker ID {request.broker_id} is not currently registered",
            ),
        )
    # The broker's logs can no longer be relied on, so remove it from the eligible leader replicas
    # too.
    changes = elections.shut_down_uncleanly(image, broker.id, context)
    gone = UnregisterBrokerRecord(broker_id=broker.id, broker_epoch=broker.epoch)
    response = UnregisterBrokerResponse(
        throttle_time=NOT_THROTTLED, error_code=ErrorCode.none, error_message=None
    )
    return Decision((*changes, gone), response)


def register_controller(
    image: ClusterImage, request: ControllerRegistrationRequest, context: DecideContext
) -> Decision:
    """Record a controller's endpoints and supported features."""
    if request.incarnation_id is None:
        return Decision((), _controller_registered(ErrorCode.invalid_request))
    record = RegisterControllerRecord(
        controller_id=request.controller_id,
        incarnation_id=request.incarnation_id,
        zk_migration_ready=request.zk_migration_ready,
        end_points=tuple(
            EndPoint(
                name=listener.name,
                host=listener.host,
                port=listener.port,
                security_protocol=listener.security_protocol,
            )
            for listener in request.listeners
        ),
        features=tuple(
            Feature(
                name=feature.name,
                min_supported_version=feature.min_supported_version,
                max_supported_version=feature.max_supported_version,
            )
            for feature in request.features
        ),
    )
    return Decision((record,), _controller_registered(ErrorCode.none))


def _controller_registered(error: ErrorCode) -> ControllerRegistrationResponse:
    return ControllerRegistrationResponse(
        throttle_time=NOT_THROTTLED, error_code=error, error_message=None
    )
