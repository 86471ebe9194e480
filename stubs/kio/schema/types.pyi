"""The named types of kio, as the plain types that satisfy them at run time."""

from typing import TypeAlias

BrokerId: TypeAlias = int
GroupId: TypeAlias = str
ProducerId: TypeAlias = int
TopicName: TypeAlias = str
TransactionalId: TypeAlias = str
