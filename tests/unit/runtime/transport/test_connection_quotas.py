"""Connection limits: which connections are accepted, delayed, refused or closed (F65)."""

from tidelog.model.outbound import LimitConnections
from tidelog.runtime.transport.connection_quotas import ConnectionQuotas
from tidelog.runtime.transport.descriptors import Shares

CLIENTS, BROKERS, CONTROLLERS = "CLIENTS", "BROKERS", "CONTROLLERS"
HOME, AWAY = "127.0.0.1", "10.0.0.7"


def quotas(
    limits: LimitConnections,
    listeners: tuple[str, ...] = (CLIENTS, BROKERS, CONTROLLERS),
    shares: Shares | None = None,
) -> ConnectionQuotas:
    return ConnectionQuotas(
        limits,
        listeners,
        controllers=(CONTROLLERS,),
        inter_broker=BROKERS,
        shares=shares or Shares(10, 1_000),
    )


def test_max_connections_makes_clients_wait() -> None:
    made = quotas(LimitConnections(total=2))
    assert made.obstacle(CLIENTS) is None
    made.opened(CLIENTS, HOME)
    made.opened(CLIENTS, AWAY)
    assert made.obstacle(CLIENTS) == "max.connections is 2"
    made.closed(CLIENTS, AWAY)
    assert made.obstacle(CLIENTS) is None


def test_the_listener_of_the_brokers_is_served_at_the_expense_of_others() -> None:
    made = quotas(LimitConnections(total=2))
    for _ in range(2):
        made.opened(CLIENTS, HOME)
    assert made.obstacle(BROKERS) is None
    made.opened(BROKERS, AWAY)
    assert made.excess == 1
    assert made.may_be_closed(CLIENTS)
    assert not made.may_be_closed(BROKERS)
    assert not made.may_be_closed(CONTROLLERS)


def test_the_only_listener_of_a_broker_is_not_protected() -> None:
    made = quotas(LimitConnections(total=1), (BROKERS, CONTROLLERS))
    made.opened(BROKERS, HOME)
    assert made.obstacle(BROKERS) == "max.connections is 1"
    assert made.may_be_closed(BROKERS)


def test_controllers_are_counted_apart() -> None:
    made = quotas(LimitConnections(total=1, per_ip=1))
    made.opened(CLIENTS, HOME)
    assert made.obstacle(CONTROLLERS) is None
    assert made.refusal(CONTROLLERS, HOME) is None
    made.opened(CONTROLLERS, HOME)
    assert made.obstacle(CONTROLLERS) == "max.connections is 1"
    assert made.excess == 0


def test_a_listener_may_have_a_limit_of_its_own() -> None:
    made = quotas(LimitConnections(per_listener={CLIENTS: 1}))
    made.opened(CLIENTS, HOME)
    assert made.obstacle(CLIENTS) == "listener.name.clients.max.connections is 1"
    assert made.obstacle(BROKERS) is None


def test_an_address_may_have_so_many_connections_over_all_listeners() -> None:
    made = quotas(LimitConnections(per_ip=2, per_ip_overrides={AWAY: 3, "localhost": 1}))
    assert made.refusal(CLIENTS, HOME) is None
    made.opened(CLIENTS, HOME)
    refusal = "127.0.0.1 has 1 connections, the limit of max.connections.per.ip"
    assert made.refusal(BROKERS, HOME) == refusal
    for _ in range(3):
        assert made.refusal(CLIENTS, AWAY) is None
        made.opened(CLIENTS, AWAY)
    assert made.refusal(CLIENTS, AWAY) is not None
    assert made.obstacle(CLIENTS) is None
    made.closed(CLIENTS, AWAY)
    assert made.refusal(CLIENTS, AWAY) is None


def test_limits_can_change() -> None:
    made = quotas(LimitConnections())
    for _ in range(5):
        made.opened(CLIENTS, HOME)
    made.limit(LimitConnections(total=3, per_ip=5))
    assert made.excess == 2
    assert made.refusal(CLIENTS, HOME) is not None
    made.limit(LimitConnections())
    assert made.excess == 0
    assert made.refusal(CLIENTS, HOME) is None


def test_a_host_that_nobody_knows_changes_nothing() -> None:
    made = quotas(LimitConnections(per_ip=1, per_ip_overrides={"nowhere.invalid": 9, "a..b": 9}))
    made.opened(CLIENTS, HOME)
    assert made.refusal(CLIENTS, HOME) is not None


def test_f65_clients_leave_the_descriptors_of_others_alone() -> None:
    made = quotas(LimitConnections(), shares=Shares(files=10, clients=3, peers=2))
    for _ in range(3):
        assert not made.lacks_descriptors(CLIENTS)
        made.opened(CLIENTS, HOME)
    assert made.lacks_descriptors(CLIENTS)
    for listener in (BROKERS, CONTROLLERS):
        assert not made.lacks_descriptors(listener)
        made.opened(listener, AWAY)
    assert made.lacks_descriptors(CONTROLLERS)
    assert made.lacks_descriptors(BROKERS)
