"""Listener and voter addresses, in the syntax of server.properties."""

from collections.abc import Mapping
from typing import NamedTuple

from tidelog.model.ids import NodeId

SECURITY_PROTOCOLS = {"PLAINTEXT": 0, "SSL": 1, "SASL_PLAINTEXT": 2, "SASL_SSL": 3}
"""The names and ids of Kafka's security protocols."""


class BadSetting(ValueError):
    """A setting that is not valid. The message is one sentence that begins with the key."""

    def __init__(self, key: str, problem: str) -> None:
        super().__init__(f"{key}: {problem}")


class Listener(NamedTuple):
    name: str
    host: str
    """Empty for all interfaces."""
    port: int
    security_protocol: int = 0


class VoterAddress(NamedTuple):
    id: NodeId
    host: str
    port: int


def parse_address(key: str, text: str) -> tuple[str, int]:
    """Parse `host:port`. An IPv6 host is in brackets; the host may be empty."""
    host, colon, port = text.strip().rpartition(":")
    if not colon or not (port.isascii() and port.isdigit()) or int(port) > 65535:
        raise BadSetting(key, f"{text!r} is not host:port")
    if host.startswith("[") and host.endswith("]"):
        return host[1:-1], int(port)
    if ":" in host:
        raise BadSetting(key, f"write the IPv6 address of {text!r} in brackets")
    return host, int(port)


def parse_listeners(
    key: str, items: tuple[str, ...], protocols: Mapping[str, int]
) -> tuple[Listener, ...]:
    """Parse `NAME://host:port, ...`. Names must be unique and in the security protocol map."""
    listeners: list[Listener] = []
    for item in filter(None, items):
        name, separator, address = item.partition("://")
        name = name.upper()
        if not separator or not name:
            raise BadSetting(key, f"{item!r} is not NAME://host:port")
        if name not in protocols:
            raise BadSetting(key, f"listener {name} is missing in listener.security.protocol.map")
        if any(other.name == name for other in listeners):
            raise BadSetting(key, f"the listener name {name} is used twice")
        host, port = parse_address(key, address)
        if port and any((other.host, other.port) == (host, port) for other in listeners):
            raise BadSetting(key, f"port {port} is used twice")
        listeners.append(Listener(name, host, port, protocols[name]))
    return tuple(listeners)


def parse_security_map(key: str, text: str) -> dict[str, int]:
    """Parse `NAME:PROTOCOL, ...` into protocol ids by listener name."""
    protocols: dict[str, int] = {}
    for item in filter(None, (part.strip() for part in text.split(","))):
        name, colon, protocol = item.partition(":")
        if not colon or protocol.strip().upper() not in SECURITY_PROTOCOLS:
            raise BadSetting(key, f"{item!r} is not NAME:PROTOCOL with one of Kafka's protocols")
        protocols[name.strip().upper()] = SECURITY_PROTOCOLS[protocol.strip().upper()]
    return protocols


def parse_voters(key: str, items: tuple[str, ...]) -> tuple[VoterAddress, ...]:
    """Parse `id@host:port, ...`. Each id must be unique."""
    voters: list[VoterAddress] = []
    for item in filter(None, items):
        id_, at, address = item.partition("@")
        if not at or not (id_.isascii() and id_.isdigit()):
            raise BadSetting(key, f"{item!r} is not id@host:port")
        if any(voter.id == int(id_) for voter in voters):
            raise BadSetting(key, f"the voter {id_} is listed twice")
        voters.append(VoterAddress(int(id_), *parse_address(key, address)))
    return tuple(voters)
