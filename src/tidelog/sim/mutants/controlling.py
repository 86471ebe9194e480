"""Wrong rules of controllers: about brokers after a crash, and about controller elections."""

from collections.abc import Iterable

from kio.schema.broker_registration.v4.request import BrokerRegistrationRequest

from tidelog.controller.decide.decision import DecideContext
from tidelog.controller.image.image import BrokerImage, ClusterImage
from tidelog.model.ids import Millis
from tidelog.protocol.metadata.metadata_records import MetadataRecord
from tidelog.replication.quorum.campaign import Campaign
from tidelog.replication.quorum.events import RequestVote
from tidelog.replication.quorum.roles import Prospective
from tidelog.sim.mutants.mutant import Mutant
from tidelog.sim.rules import Replacement


def _same_session() -> Iterable[Replacement]:
    def end_of_run(
        image: ClusterImage,
        existing: BrokerImage,
        request: BrokerRegistrationRequest,
        context: DecideContext,
    ) -> Iterable[MetadataRecord]:
        return ()

    yield Replacement("tidelog.controller.decide.brokers:_end_of_run", end_of_run)


def _without_elr() -> Iterable[Replacement]:
    def elr_enabled(image: ClusterImage) -> bool:
        return False

    yield Replacement("tidelog.controller.decide.elections:elr_enabled", elr_enabled)
    yield Replacement("tidelog.controller.decide.brokers:elr_enabled", elr_enabled)


def _without_pre_vote() -> Iterable[Replacement]:
    right = Campaign._become_prospective

    def become_prospective(self: Campaign, now: Millis) -> None:
        before = len(self._effects)
        right(self, now)
        if isinstance(self.role, Prospective):
            asked = self._effects[before:]
            self._effects[before:] = [one for one in asked if not isinstance(one, RequestVote)]
            self._become_candidate(now)

    yield Replacement(
        "tidelog.replication.quorum.campaign:Campaign._become_prospective", become_prospective
    )


CONTROLLING = (
    Mutant(
        "same-session",
        ("F17",),
        "A broker that restarts before its session expires stays in its in-sync sets.",
        _same_session,
        "a_leader_back_before_it_was_missed_does_not_lead_with_what_is_left",
    ),
    Mutant(
        "no-elr",
        ("F18",),
        "The last member of the in-sync set is elected again, even after it has lost its tail.",
        _without_elr,
        "the_last_replica_standing_loses_its_tail",
    ),
    Mutant(
        "no-pre-vote",
        ("F36",),
        "A voter without contact to a leader starts a new epoch at once, without a pre-vote.",
        _without_pre_vote,
        "a_voter_back_from_a_partition_does_not_depose_the_controller",
    ),
)
