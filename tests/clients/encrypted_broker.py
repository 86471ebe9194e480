"""A broker with encrypted listeners, and the certificates and settings of its clients."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path

from tests.clients.schema import Schemas
from tests.clients.systems import HOST, Broker, free_block

from tidelog.clusters.certificate_authority import CertificateAuthority, Issued

MODULE = "org.apache.kafka.common.security.plain.PlainLoginModule"
LISTENERS = ("MUTUAL", "CLIENTS", "ELSEWHERE")
"""SSL with certificates of clients, SASL_SSL, and SSL with a certificate of another host."""


class EncryptedBroker:
    def __init__(self, broker: Broker, ports: Mapping[str, int], directory: Path) -> None:
        self.broker, self.directory = broker, directory
        self._ports = ports
        self.authority = CertificateAuthority("test CA")
        self.stranger = CertificateAuthority("another CA")
        self.trusted = self._file("ca.pem", self.authority.certificate_pem)
        self.mistrusted = self._file("other-ca.pem", self.stranger.certificate_pem)
        expired = timedelta(days=-1)
        self.clients = {
            "alice": self.authority.issue("alice"),
            "expired": self.authority.issue("alice", valid_for=expired),
            "stranger": self.stranger.issue("alice"),
        }
        for name, issued in self.clients.items():
            self._file(f"{name}.pem", issued.key_pem + issued.certificate_pem)
            self._file(f"{name}-key.pem", issued.key_pem)
            self._file(f"{name}-cert.pem", issued.certificate_pem)

    def bootstrap(self, listener: str) -> str:
        return f"{HOST}:{self._ports[listener]}"

    def path(self, name: str) -> str:
        return str(self.directory / name)

    def _file(self, name: str, text: str) -> str:
        path = self.directory / name
        path.write_text(text)
        return str(path)

    def store(self, name: str, issued: Issued) -> str:
        return self._file(f"{name}.pem", issued.key_pem + issued.certificate_pem)


@contextmanager
def encrypted_broker(
    system: type[Broker], schemas: Schemas, directory: Path
) -> Iterator[EncryptedBroker]:
    blocks = [free_block() for _ in LISTENERS]
    ports = {name: block.first for name, block in zip(LISTENERS, blocks, strict=True)}
    protocols = "PLAINTEXT:PLAINTEXT,CONTROLLER:SSL,MUTUAL:SSL,CLIENTS:SASL_SSL,ELSEWHERE:SSL"
    broker = system(directory, schemas, {"listener.security.protocol.map": protocols})
    made = EncryptedBroker(broker, ports, directory)
    keys = made.store("broker", made.authority.issue("broker", ["localhost", HOST]))
    elsewhere = made.store("elsewhere", made.authority.issue("broker", ["elsewhere.example.org"]))
    jaas = f'{MODULE} required user_alice="alice-secret";'
    properties = {
        "ssl.keystore.type": "PEM",
        "ssl.keystore.location": keys,
        "ssl.truststore.type": "PEM",
        "ssl.truststore.location": made.trusted,
        "listener.name.controller.ssl.client.auth": "required",
        "listener.name.mutual.ssl.client.auth": "required",
        "listener.name.mutual.ssl.principal.mapping.rules": "RULE:^CN=(.*)$/$1/U",
        "listener.name.elsewhere.ssl.keystore.location": elsewhere,
        "sasl.enabled.mechanisms": "PLAIN",
        "listener.name.clients.plain.sasl.jaas.config": jaas,
        "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
        "super.users": "User:ANONYMOUS;User:ALICE;User:alice;User:CN=broker",
    }
    more = "".join(f",{name}://{HOST}:{port}" for name, port in ports.items())
    lines = [
        line + more if line.startswith(("listeners=", "advertised.listeners=")) else line
        for line in broker.config.read_text().splitlines()
    ]
    lines += [f"{key}={value}" for key, value in properties.items()]
    broker.config.write_text("\n".join(lines) + "\n")
    broker.format()
    broker.start()
    try:
        yield made
    finally:
        broker.kill()
        for block in blocks:
            block.release()
