"""The broker keys about authorization."""

from tidelog.config.checks import one_of, principals
from tidelog.config.key import ConfigKey, ConfigType, string

STANDARD_AUTHORIZER = "org.apache.kafka.metadata.authorizer.StandardAuthorizer"

SECURITY_KEYS = (
    string(
        "authorizer.class.name",
        "",
        "The authorizer: Kafka's StandardAuthorizer, or none if the key is empty.",
        one_of("", STANDARD_AUTHORIZER),
    ),
    ConfigKey(
        "super.users",
        ConfigType.STRING,
        "",
        "The principals that may do everything: User:name;User:name ...",
        principals,
        internal=True,
    ),
    ConfigKey(
        "allow.everyone.if.no.acl.found",
        ConfigType.BOOLEAN,
        "false",
        "Whether everyone may use a resource for which there are no ACLs.",
        internal=True,
    ),
)
