"""Which topics a regular expression may match: those that the subscribed client may describe.

Without this filter, a client could learn the names of topics that it may not see, and a member
would be assigned partitions that it may not read (KIP-848).
"""

from collections.abc import Iterable

from tidelog.controller.image.image import ClusterImage
from tidelog.security.acls import AclOperation, AclResource
from tidelog.security.authorizer import AclAuthorizer, AclSubject, AuthorizerSettings


class TopicAccess:
    """Decides by the entries of an image; the authorizer is kept while the entries are the same."""

    def __init__(self, settings: AuthorizerSettings | None) -> None:
        self._settings = settings
        self._entries: object = None
        self._authorizer: AclAuthorizer | None = None

    def describable(
        self, names: Iterable[str], subject: AclSubject | None, image: ClusterImage
    ) -> list[str]:
        """The names of the topics that the subject may describe; all without an authorizer."""
        if self._settings is None:
            return list(names)
        if subject is None:
            return []
        authorizer = self._of(image, self._settings)
        topic, describe = AclResource.TOPIC, AclOperation.DESCRIBE
        return [name for name in names if authorizer.allows(subject, describe, topic, name)]

    def _of(self, image: ClusterImage, settings: AuthorizerSettings) -> AclAuthorizer:
        if self._authorizer is None or self._entries is not image.acls:
            self._authorizer = AclAuthorizer(image.acls.values(), settings)
            self._entries = image.acls
        return self._authorizer
