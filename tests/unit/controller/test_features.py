"""Feature levels of a new cluster, and changes of feature levels."""

import pytest
from kio.schema.update_features.v2.request import FeatureUpdateKey, UpdateFeaturesRequest
from tests.unit.controller.support import (
    SETTINGS,
    TIMEOUT,
    after,
    ask,
    broker,
    cluster,
    partition,
    settings,
)

from tidelog.controller.features import SUPPORTED_FEATURES, activation_records, elr_enabled
from tidelog.controller.image.apply import apply, apply_all
from tidelog.controller.image.image import BROKER_RESOURCE, ClusterImage, VersionRange
from tidelog.protocol.metadata.metadata_records import (
    AbortTransactionRecord,
    BeginTransactionRecord,
    FeatureLevelRecord,
)

ELR = "eligible.leader.replicas.version"
UPGRADE, SAFE, UNSAFE = 1, 2, 3


def updates(*features: tuple[str, int, int], validate_only: bool = False) -> UpdateFeaturesRequest:
    return UpdateFeaturesRequest(
        timeout=TIMEOUT,
        feature_updates=tuple(
            FeatureUpdateKey(feature=name, max_version_level=level, upgrade_type=kind)
            for name, level, kind in features
        ),
        validate_only=validate_only,
    )


# -- A new controller ------------------------------------------------------------------------------


def test_a_new_cluster_begins_with_its_features_in_one_transaction() -> None:
    records = activation_records(ClusterImage(), settings({"min.insync.replicas": "2"}))
    image = apply_all(ClusterImage(), records, len(records) - 1, 1)

    assert image.before_transaction is None
    assert image.features == {
        "metadata.version": 27,
        ELR: 1,
        "group.version": 1,
        "transaction.version": 2,
        "share.version": 1,
    }
    assert image.config(BROKER_RESOURCE, "") == {"min.insync.replicas": "2"}
    half = apply_all(ClusterImage(), records[:-1], len(records) - 2, 1)
    assert half.visible.features == {}


def test_a_cluster_that_is_there_needs_nothing() -> None:
    assert activation_records(cluster(), SETTINGS) == ()


def test_what_a_dead_controller_left_half_done_is_undone() -> None:
    image = apply(cluster(), BeginTransactionRecord())
    image = apply(image, FeatureLevelRecord(name="x", feature_level=1))
    records = activation_records(image, SETTINGS)

    assert len(records) == 1
    assert isinstance(records[0], AbortTransactionRecord)
    assert "x" not in apply(image, records[0]).features


def test_a_bootstrap_cut_short_is_begun_again() -> None:
    records = activation_records(ClusterImage(), SETTINGS)
    half = apply_all(ClusterImage(), records[:2], 1, 1)
    again = activation_records(half, SETTINGS)

    assert isinstance(again[0], AbortTransactionRecord)
    assert again[1:] == records
    assert apply_all(half, again, 9, 2).visible.features["metadata.version"] == 27


def test_nothing_is_offered_that_the_cluster_does_not_begin_with() -> None:
    # The level of kraft.version is in the quorum's log and not in the image.
    features = {"group.version", "transaction.version", "share.version", "kraft.version"}
    started = {"metadata.version", ELR, *features}
    assert set(SUPPORTED_FEATURES) == started


# -- UpdateFeatures --------------------------------------------------------------------------------


def test_levels_move_together_or_not_at_all() -> None:
    image = cluster(3, elr=False)
    decision = ask(image, updates((ELR, 1, UPGRADE), ("metadata.version", 26, SAFE)))
    assert decision.response.error_code.name == "none"
    assert after(image, decision).features == {"metadata.version": 26, ELR: 1}

    refused = ask(image, updates((ELR, 1, UPGRADE), ("foo", 1, UPGRADE)))
    assert refused.records == ()
    assert ask(image, updates((ELR, 1, UPGRADE), validate_only=True)).records == ()


def test_kraft_version_is_raised_by_the_quorum_s_own_records() -> None:
    raised = ask(cluster(0), updates(("kraft.version", 1, UPGRADE)))
    assert (raised.response.error_code.name, raised.records) == ("none", ())
    assert raised.makes_voters_dynamic
    same = ask(cluster(0), updates(("kraft.version", 0, UPGRADE)))
    assert (same.response.error_code.name, same.records) == ("none", ())
    assert not same.makes_voters_dynamic
    tried = ask(cluster(0), updates(("kraft.version", 1, UPGRADE), validate_only=True))
    assert not tried.makes_voters_dynamic
    wrong = ask(cluster(0), updates(("kraft.version", 1, SAFE))).response
    assert wrong.error_code.name == "invalid_update_version"


def test_turning_eligible_replicas_on_leaves_one_minimum_for_all() -> None:
    configs = {(BROKER_RESOURCE, "2"): {"min.insync.replicas": "3", "num.io.threads": "4"}}
    image = cluster(3, {"t": partition()}, configs, elr=False)
    image = after(image, ask(image, updates((ELR, 1, UPGRADE))))

    assert elr_enabled(image)
    assert image.config(BROKER_RESOURCE, "") == {"min.insync.replicas": "1"}
    assert image.config(BROKER_RESOURCE, "2") == {"num.io.threads": "4"}


def test_turning_eligible_replicas_off_forgets_them() -> None:
    image = cluster(3, {"t": partition(isr=(1,), elr=(2,))})
    image = after(image, ask(image, updates((ELR, 0, SAFE))))

    assert not elr_enabled(image)
    assert image.topics["t"].partitions[0].elr == ()


@pytest.mark.parametrize(
    ("update", "reason"),
    [
        (
            ("foo", 1, UPGRADE),
            "Invalid update version 1 for feature foo. "
            "Local controller 1 does not support this feature.",
        ),
        (
            (ELR, 2, UPGRADE),
            f"Invalid update version 2 for feature {ELR}. "
            "Local controller 1 only supports versions 0-1",
        ),
        (
            (ELR, -1, UPGRADE),
            f"Invalid update version -1 for feature {ELR}. "
            "A feature version cannot be less than 0.",
        ),
        (
            (ELR, 0, UPGRADE),
            f"Invalid update version 0 for feature {ELR}. Can't downgrade the version of this "
            "feature without setting the upgrade type to either safe or unsafe downgrade.",
        ),
        (
            (ELR, 0, 7),
            f"Invalid update version 0 for feature {ELR}. "
            "The controller does not support the given upgrade type.",
        ),
        (
            ("metadata.version", 20, SAFE),
            "Invalid metadata.version 20. Refusing to perform the requested downgrade because "
            "it might delete metadata information.",
        ),
        (
            ("metadata.version", 20, UNSAFE),
            "Invalid metadata.version 20. Unsafe metadata downgrade is not supported in this "
            "version.",
        ),
        (
            ("metadata.version", 28, UPGRADE),
            "Invalid update version 28 for feature metadata.version. "
            "Local controller 1 only supports versions 7-27",
        ),
    ],
)
def test_a_refusal_has_kafkas_error_and_words(update: tuple[str, int, int], reason: str) -> None:
    response = ask(cluster(3), updates(update)).response

    assert response.error_code.name == "invalid_update_version"
    assert response.error_message == (
        "The update failed for all features since the following feature had an error: " + reason
    )


def test_every_broker_must_support_a_level() -> None:
    old = broker(2, features={"metadata.version": VersionRange(7, 27)})
    response = ask(cluster([broker(1), old], elr=False), updates((ELR, 1, UPGRADE))).response

    assert "Broker 2 does not support this feature." in response.error_message
    raised = ask(cluster(1, elr=False), updates((ELR, 1, SAFE))).response
    assert "Can't downgrade to a newer version." in raised.error_message
