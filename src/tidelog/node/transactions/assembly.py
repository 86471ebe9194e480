"""Builds the parts of a broker that transactions need."""

from tidelog.api.groups.internal_topics import TRANSACTION_STATE
from tidelog.config.settings import BrokerSettings
from tidelog.coordination.transactions.machine import (
    TransactionMachine,
    TransactionSettings,
    refuse_request,
)
from tidelog.node.basics import Basics
from tidelog.node.coordinators.shards import CoordinatorKind
from tidelog.node.partitions.partitions import Partitions
from tidelog.node.partitions.replica import Replica
from tidelog.node.transactions.coordinator_client import TransactionCoordinators
from tidelog.node.transactions.transactional_appends import TransactionalAppends


def transaction_coordinators(settings: BrokerSettings) -> CoordinatorKind:
    machine_settings = _settings(settings)

    def new_machine(replica: Replica) -> TransactionMachine:
        assert replica.leader is not None
        return TransactionMachine(machine_settings, replica.leader.epoch)

    return CoordinatorKind(
        TRANSACTION_STATE, new_machine, refuse_request, settings.request_timeout_ms
    )


def build_transactional_appends(basics: Basics, partitions: Partitions) -> TransactionalAppends:
    settings = basics.settings
    coordinators = TransactionCoordinators(settings, basics.peers, basics.ready, basics.current)
    return TransactionalAppends(settings, basics.clock, partitions, coordinators, basics.ports.hold)


def _settings(settings: BrokerSettings) -> TransactionSettings:
    return TransactionSettings(
        id_expiration_ms=settings.transactional_id_expiration_ms,
        abort_interval_ms=settings.transaction_abort_timed_out_transaction_cleanup_interval_ms,
        expiry_interval_ms=settings.transaction_remove_expired_transaction_cleanup_interval_ms,
    )
