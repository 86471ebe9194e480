"""kraft.version is raised in a running cluster: the static voters become records in the log."""

from datetime import timedelta
from typing import Any

from kio.schema.update_features.v2.request import FeatureUpdateKey
from tests.sim.cluster_steps import created, images_agree
from tests.sim.controllers import another, await_new_controller, only_controller
from tests.sim.messages import ask, create_topic
from tests.sim.talk import Talk, await_ready, await_true, running

from tidelog.model.errors import ErrorCode
from tidelog.sim.machines.cluster import SimCluster
from tidelog.sim.machines.host import SimHost

API_VERSIONS, UPDATE_FEATURES = 18, 57
UPGRADE, DOWNGRADE = 1, 2


def update(cluster: SimCluster, via: SimHost, level: int, kind: int = UPGRADE) -> Any:
    wanted = FeatureUpdateKey(feature="kraft.version", max_version_level=level, upgrade_type=kind)
    return Talk(cluster, via.id).ask(
        ask(
            UPDATE_FEATURES,
            timeout=timedelta(seconds=5),
            feature_updates=(wanted,),
            validate_only=False,
        )
    )


def level_at(cluster: SimCluster, host: SimHost) -> int:
    answer = Talk(cluster, host.id).ask(
        ask(API_VERSIONS, client_software_name="test", client_software_version="1")
    )
    levels = {one.name: one.max_version_level for one in answer.finalized_features}
    return levels.get("kraft.version", 0)


def are_dynamic(cluster: SimCluster) -> bool:
    return all(level_at(cluster, host) == 1 for host in cluster.up)


def test_static_voters_become_dynamic_in_a_running_cluster(seed: int) -> None:
    cluster = running(seed)
    via = another(cluster, only_controller(cluster))
    assert level_at(cluster, via) == 0

    assert update(cluster, via, 1).error_code is ErrorCode.none
    await_true(cluster, lambda: are_dynamic(cluster))
    assert update(cluster, via, 1).error_code is ErrorCode.none, "it is what it is"
    refused = update(cluster, via, 0, DOWNGRADE)
    assert refused.error_code is ErrorCode.invalid_update_version

    # The nodes still elect a leader, and know the voters after all nodes have restarted.
    old = only_controller(cluster)
    old.kill()
    await_new_controller(cluster, old)
    cluster.start()
    await_ready(cluster)
    for host in list(cluster.up):
        host.lose_power()
    cluster.start()
    await_ready(cluster)
    assert are_dynamic(cluster)
    assert created(Talk(cluster, via.id).ask(create_topic("after", 1, 3)))
    await_true(cluster, lambda: images_agree(cluster))


def test_it_is_not_raised_while_a_voter_has_not_said_on_which_disk_it_is(seed: int) -> None:
    cluster = running(seed)
    old = only_controller(cluster)
    old.kill()
    controller = await_new_controller(cluster, old)

    refused = update(cluster, controller, 1)
    assert refused.error_code is ErrorCode.invalid_update_version
    assert str(old.id) in refused.error_message
    cluster.start()
    await_ready(cluster)
    assert update(cluster, controller, 1).error_code is ErrorCode.none
    await_true(cluster, lambda: are_dynamic(cluster))
