"""Records of security: ACLs as entries, and the keys of records that an image keeps as they are."""

from tidelog.protocol.metadata import metadata_records as r
from tidelog.protocol.metadata.metadata_records import MetadataRecord
from tidelog.security.acls import AclEntry


def acl_entry(record: r.AccessControlEntryRecord) -> AclEntry:
    return AclEntry(
        record.resource_type,
        record.resource_name,
        record.pattern_type,
        record.principal,
        record.host,
        record.operation,
        record.permission_type,
    )


def carried_key(record: MetadataRecord) -> tuple[tuple[str | int, ...], bool]:
    """The key of a carried record, and whether the record removes the earlier one."""
    match record:
        case r.DelegationTokenRecord() | r.RemoveDelegationTokenRecord():
            removing = isinstance(record, r.RemoveDelegationTokenRecord)
            return ("token", record.token_id), removing
        case r.ClientQuotaRecord():
            # The default entity has a shorter key, because a named entity may have any name.
            parts = (
                part
                for entity in record.entity
                for part in (
                    (entity.entity_type, "named", entity.entity_name)
                    if entity.entity_name is not None
                    else (entity.entity_type, "default")
                )
            )
            return ("quota", record.key, *parts), record.remove
    raise AssertionError(record)
