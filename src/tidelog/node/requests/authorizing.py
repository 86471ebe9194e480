"""Keeps the authorizer of a node's requests up to date with the access control entries.

Invariant: an authorizer is replaced in the event that changes the entries, so a revoked permission
is not used after that event (F87).
"""

from tidelog.config.settings import BrokerSettings
from tidelog.node.metadata.current_image import ImageChange
from tidelog.node.requests.context import RequestContext
from tidelog.security.authorizer import AclAuthorizer, AuthorizerSettings


class Authorizing:
    def __init__(self, settings: BrokerSettings, context: RequestContext) -> None:
        self._settings = authorizer_settings(settings)
        self._context = context
        if self._settings is not None:
            context.authorizer = AclAuthorizer((), self._settings)

    def image_changed(self, change: ImageChange) -> None:
        if self._settings is not None and change.old.acls is not change.new.acls:
            self._context.authorizer = AclAuthorizer(change.new.acls.values(), self._settings)


def authorizer_settings(settings: BrokerSettings) -> AuthorizerSettings | None:
    """The settings of the authorizer; None if none is configured."""
    if not settings.authorizer_class_name:
        return None
    super_users = (user.strip() for user in settings.super_users.split(";"))
    return AuthorizerSettings(
        frozenset(filter(None, super_users)), settings.allow_everyone_if_no_acl_found
    )
