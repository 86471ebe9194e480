"""Subscriptions with a regular expression, which the coordinator matches with all topic names.

Expressions have RE2's syntax, as in Kafka, and RE2 matches in linear time, so no expression can
hold up the node (ADR 25). Matching happens after the heartbeat was answered: its result arrives
as a decision of its own.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Any, NamedTuple

from tidelog.coordination.groups.consumer.group import ConsumerGroup, ResolvedRegex, add
from tidelog.coordination.groups.consumer.member import ConsumerMember
from tidelog.coordination.groups.consumer.outcome import (
    GroupOutcome,
    GroupView,
    MetadataChecked,
    Refused,
    ResolveRegexes,
)
from tidelog.coordination.groups.consumer.records import (
    ConsumerGroupMetadataKey,
    ConsumerGroupMetadataValue,
    ConsumerGroupRecord,
    ConsumerGroupRegularExpressionKey,
    ConsumerGroupRegularExpressionValue,
)
from tidelog.model.errors import ErrorCode
from tidelog.model.ids import Millis

MIN_REFRESH_INTERVAL_MS: Millis = 10_000
"""The shortest time between two refreshes of a group; a constant in Kafka."""
_CACHED = 256

_KAFKAS_WORDS = {
    "missing )": "missing closing )",
    "missing ]": "missing closing ]",
    "no argument for repetition operator": "missing argument to repetition operator",
    "bad repetition operator": "invalid nested repetition operator",
    "invalid repetition size": "invalid repeat count",
    "invalid perl operator": "invalid or unsupported Perl syntax",
    "invalid named capture group": "invalid named capture",
    "trailing \\": "trailing backslash at end of expression",
}
"""The problems of RE2 for which Kafka's library uses other words."""


class InvalidExpression(ValueError):
    """The text is not a regular expression of RE2."""


class RegexUpdate(NamedTuple):
    records: list[ConsumerGroupRecord]
    has_changed: bool = False
    """Whether the member subscribes with another expression than before."""
    is_resolved: bool = False
    """Whether the topics of the new expression are already known."""
    request: ResolveRegexes | None = None


@lru_cache(maxsize=_CACHED)
def compiled(expression: str) -> Any:
    """The compiled expression; raises InvalidExpression."""
    # Imported on first use: most brokers never need it.
    import re2

    options = re2.Options()
    options.log_errors = False
    try:
        return re2.compile(expression, options)
    except re2.error as error:
        reason = error.args[0] if error.args else ""
        text = reason.decode(errors="replace") if isinstance(reason, bytes) else str(reason)
        problem = text.partition(":")[0]
        raise InvalidExpression(_KAFKAS_WORDS.get(problem, problem)) from error


def matches(expression: str, names: Iterable[str]) -> frozenset[str]:
    """The names that the whole expression matches; none if it is not valid."""
    try:
        pattern = compiled(expression)
    except InvalidExpression:
        return frozenset()
    return frozenset(name for name in names if pattern.fullmatch(name) is not None)


def resolve(
    regexes: Iterable[str], names: Sequence[str], version: int, wall: Millis
) -> dict[str, ResolvedRegex]:
    """Match expressions with these names, from the metadata of this version."""
    return {regex: ResolvedRegex(matches(regex, names), version, wall) for regex in regexes}


def update_regex(
    group: ConsumerGroup, old: ConsumerMember, new: ConsumerMember, view: GroupView
) -> RegexUpdate:
    """Handle the change of a member's expression, and request a refresh if one is due."""
    records: list[ConsumerGroupRecord] = []
    has_changed = old.topic_regex != new.topic_regex
    is_resolved = is_new = False
    if has_changed:
        if old.regex is not None and group.regexes[old.regex] == 1:
            records.append((ConsumerGroupRegularExpressionKey(group.group_id, old.regex), None))
        if new.regex is None:
            is_resolved = old.regex is not None
        elif group.regexes[new.regex] == 0:
            _check(new.regex)
            is_new = True
        else:
            is_resolved = new.regex in group.resolved
    request = _refresh(group, old, new, view, is_new=is_new)
    return RegexUpdate(records, has_changed, is_resolved, request)


def _check(expression: str) -> None:
    try:
        compiled(expression)
    except InvalidExpression as error:
        text = f"SubscribedTopicRegex `{expression}` is not a valid regular expression: {error}."
        raise Refused(ErrorCode.invalid_regular_expression, text) from error


def _refresh(
    group: ConsumerGroup,
    old: ConsumerMember,
    new: ConsumerMember,
    view: GroupView,
    *,
    is_new: bool,
) -> ResolveRegexes | None:
    if view.is_resolving or not (is_new or group.regexes):
        return None
    last = next(iter(group.resolved.values()), None)
    # A timestamp of the future means that the clock has stepped back.
    since = None if last is None else view.wall - last.timestamp
    if since is not None and 0 <= since <= MIN_REFRESH_INTERVAL_MS:
        return None
    used = Counter(group.regexes)
    for member, by in ((old, -1), (new, 1)):
        add(used, () if member.regex is None else (member.regex,), by)
    is_due = (
        is_new
        or len(used) != len(group.resolved)
        or last is None
        or last.version < view.topics.newest_topic_version
        or since is None
        or not 0 <= since <= view.settings.regex_refresh_interval_ms
    )
    if not is_due or not used:
        return None
    return ResolveRegexes(group.group_id, tuple(sorted(used)), view.subject)


def regexes_resolved(
    group: ConsumerGroup, found: Mapping[str, ResolvedRegex], view: GroupView
) -> GroupOutcome:
    """Store the topics that expressions match; a change of the topics starts a new group epoch."""
    used = {regex: topics for regex, topics in found.items() if group.regexes[regex] > 0}
    records: list[ConsumerGroupRecord] = [
        (
            ConsumerGroupRegularExpressionKey(group.group_id, regex),
            ConsumerGroupRegularExpressionValue(
                topics=tuple(sorted(resolved.topics)),
                version=resolved.version,
                timestamp=resolved.timestamp,
            ),
        )
        for regex, resolved in sorted(used.items())
    ]
    none: frozenset[str] = frozenset()
    has_changed = any(
        resolved.topics != (group.resolved[regex].topics if regex in group.resolved else none)
        for regex, resolved in used.items()
    )
    after = {**group.resolved, **used}
    names = frozenset(group.names).union(*(resolved.topics for resolved in after.values()))
    metadata_hash = view.hashes.of_group(names, view.topics)
    if not has_changed and metadata_hash == group.metadata_hash:
        return GroupOutcome(tuple(records))
    epoch = group.epoch + 1
    value = ConsumerGroupMetadataValue(epoch=epoch, metadata_hash=metadata_hash)
    records.append((ConsumerGroupMetadataKey(group.group_id), value))
    return GroupOutcome(tuple(records), changes=(MetadataChecked(group.group_id, epoch),))
