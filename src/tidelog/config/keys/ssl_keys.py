"""The broker keys about TLS. `listener.name.NAME.KEY` sets each of them for one listener."""

from tidelog.config.checks import one_of
from tidelog.config.key import ConfigKey, ConfigType, string, strings

STORE_TYPES = ("JKS", "PKCS12", "PEM")
TLS_VERSIONS = ("TLSv1.2", "TLSv1.3")


def _password(name: str, documentation: str) -> ConfigKey:
    return ConfigKey(name, ConfigType.PASSWORD, None, documentation)


def _optional(name: str, documentation: str) -> ConfigKey:
    return ConfigKey(name, ConfigType.STRING, None, documentation)


SSL_KEYS = (
    string(
        "ssl.client.auth",
        "none",
        "Whether clients of SSL listeners send a certificate: required, requested or none.",
        one_of("required", "requested", "none"),
    ),
    strings(
        "ssl.enabled.protocols",
        "TLSv1.2,TLSv1.3",
        "The versions of TLS that are accepted: TLSv1.2 and TLSv1.3.",
        one_of(*TLS_VERSIONS),
    ),
    strings(
        "ssl.cipher.suites",
        "",
        "The cipher suites that are accepted, by their IANA names; all secure ones if it is empty.",
    ),
    string(
        "ssl.endpoint.identification.algorithm",
        "https",
        "How this node checks the host name in the certificate of another node: https, or empty "
        "for no check.",
        one_of("https", "HTTPS", ""),
    ),
    string(
        "ssl.principal.mapping.rules",
        "DEFAULT",
        "Rules that turn the name in a client's certificate into a user name.",
    ),
    string(
        "ssl.keystore.type",
        "JKS",
        "The format of the key store: PEM or PKCS12. A file of Java's old format is refused.",
        one_of(*STORE_TYPES),
    ),
    _optional("ssl.keystore.location", "The file with the key and the certificates of this node."),
    _password("ssl.keystore.password", "The password of the key store."),
    _password("ssl.keystore.key", "The private key, in PEM, in place of a file."),
    _password("ssl.keystore.certificate.chain", "The certificates, in PEM, in place of a file."),
    _password("ssl.key.password", "The password of the private key."),
    string(
        "ssl.truststore.type",
        "JKS",
        "The format of the trust store: PEM or PKCS12.",
        one_of(*STORE_TYPES),
    ),
    _optional("ssl.truststore.location", "The file with the certificates that this node trusts."),
    _password("ssl.truststore.password", "The password of the trust store."),
    _password("ssl.truststore.certificates", "The trusted certificates, in PEM, without a file."),
)
