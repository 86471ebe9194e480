"""Maps each effect of a request handler to the part that carries it out."""

from tidelog.api.handler import Request
from tidelog.log.results import AppendOrigin
from tidelog.model.authentication import Authenticate, BeginAuthentication
from tidelog.model.effects import (
    AppendBatches,
    AppendInTransaction,
    AskQuorum,
    AwaitElections,
    ChangeMetadata,
    Coordinate,
    CoordinateAll,
    DeleteRecordsBefore,
    DescribeDirectories,
    DescribeProducers,
    Effect,
    FetchBatches,
    FetchMetadata,
    FindEpochEnds,
    FindOffsets,
    JoinTransaction,
    MoveReplicas,
    Pause,
    RunJob,
    WriteMarkers,
)
from tidelog.model.share_effects import (
    AcknowledgeRecords,
    AcquireRecords,
    ReleaseRecords,
)
from tidelog.node.broker import Broker
from tidelog.node.jobs import Jobs
from tidelog.node.quorum.quorum import Quorum
from tidelog.node.requests.authentication import Authentication
from tidelog.node.requests.parking import PARKED, Parked, Resume
from tidelog.node.requests.requests import Execute
from tidelog.node.requests.slices import Slices, label
from tidelog.node.shares.share_fetches import ShareFetches


def executors(
    broker: Broker,
    quorum: Quorum,
    jobs: Jobs,
    slices: Slices,
    authentication: Authentication,
    change_metadata: Execute,
) -> dict[type[Effect], Execute]:
    """The executor of each effect that a handler can request."""
    partitions, queries, coordinators = broker.partitions, broker.queries, broker.coordinators

    def pause(resume: Resume, request: Request) -> Parked:
        api = type(request.message).__name__.removesuffix("Request")
        about = label(api, request.version, request.client_id, request.client_host)
        slices.later(lambda: resume(None), about)
        return PARKED

    return {
        AppendBatches: lambda effect, resume, request: partitions.append(
            effect, resume, AppendOrigin.CLIENT, request.conn
        ),
        FetchBatches: lambda effect, resume, request: broker.fetches.fetch(
            effect, resume, request.conn
        ),
        FindOffsets: lambda effect, resume, request: broker.offset_queries.find(
            effect, resume, request.conn
        ),
        FindEpochEnds: lambda effect, resume, request: queries.find_epoch_ends(
            effect, resume, request.conn
        ),
        DeleteRecordsBefore: lambda effect, resume, _: broker.deletions.delete(effect, resume),
        DescribeProducers: lambda effect, *_: queries.describe_producers(effect),
        DescribeDirectories: lambda effect, *_: queries.describe_directories(effect),
        MoveReplicas: lambda effect, *_: queries.move_replicas(effect),
        ChangeMetadata: change_metadata,
        AwaitElections: lambda effect, resume, _: broker.recently_fenced.wait(
            effect.topics, resume
        ),
        AskQuorum: lambda effect, resume, _: quorum.ask(effect.request, resume),
        FetchMetadata: lambda effect, resume, _: quorum.serve_fetch(effect.request, resume),
        AppendInTransaction: lambda effect, resume, request: broker.transactional_appends.append(
            effect, resume, request.conn
        ),
        JoinTransaction: lambda effect, resume, _: broker.transactional_appends.join(
            effect, resume
        ),
        WriteMarkers: lambda effect, resume, _: broker.marker_writes.write(effect, resume),
        Coordinate: coordinators.coordinate,
        CoordinateAll: coordinators.coordinate_all,
        BeginAuthentication: lambda effect, _, request: authentication.begin(effect, request),
        Authenticate: lambda effect, _, request: authentication.authenticate(effect, request),
        **_share_executors(broker.share_fetches),
        RunJob: lambda effect, resume, _: jobs.run(effect, resume),
        Pause: lambda effect, resume, request: pause(resume, request),
    }


def _share_executors(shares: ShareFetches) -> dict[type[Effect], Execute]:
    return {
        AcquireRecords: lambda effect, resume, request: shares.acquire(
            effect, resume, request.conn
        ),
        AcknowledgeRecords: lambda effect, resume, _: shares.acknowledge(effect, resume),
        ReleaseRecords: lambda effect, resume, _: shares.release(effect, resume),
    }
