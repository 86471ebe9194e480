"""The reports on groups, with the columns and the widths of kafka-consumer-groups.sh."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import groupby

from tidelog.client.administration.group_admin import ListedGroup
from tidelog.client.administration.group_description import GroupDescription, MemberDescription
from tidelog.client.administration.group_lag import GroupPosition
from tidelog.model.ids import Offset, TopicPartition

MISSING = "-"
WIDTH = 15
"""The smallest width of a column with names."""

Row = Sequence[object]


def listing(groups: Sequence[ListedGroup], *, types: bool, states: bool) -> Iterator[str]:
    name_width = max([WIDTH, *(len(group.name) for group in groups)]) + 10
    heads = ["GROUP", *(["TYPE"] if types else []), *(["STATE"] if states else [])]
    widths = [name_width, *[20] * (len(heads) - 1)]
    yield _line(widths, heads)
    for group in groups:
        columns = [group.type or "Unknown"] if types else []
        columns += [group.state or "Unknown"] if states else []
        yield _line(widths, [group.name, *columns])


def offsets(group: str, rows: Sequence[GroupPosition], *, verbose: bool) -> Iterator[str]:
    """The committed offset and the lag of each partition."""
    heads = ["GROUP", "TOPIC", "PARTITION", *(["LEADER-EPOCH"] if verbose else [])]
    heads += ["CURRENT-OFFSET", "LOG-END-OFFSET", "LAG", "CONSUMER-ID", "HOST", "CLIENT-ID"]
    cells = [[group, *_position(row, verbose)] for row in rows]
    id_width, host_width = (_widest(cells, column) for column in (-3, -2))
    widths = [_widest(cells, 0), _widest(cells, 1), 10, *[WIDTH] * (4 if verbose else 3)]
    widths += [id_width, host_width, 0]
    yield ""
    yield _line(widths, heads)
    for row in cells:
        yield _line(widths, row)


def _position(row: GroupPosition, verbose: bool) -> list[str]:
    committed, member = row.committed, row.member
    epoch = [_shown(committed and committed.leader_epoch)] if verbose else []
    offset = _shown(committed and committed.offset)
    who = (member.id, member.host, member.client_id) if member else (MISSING,) * 3
    where = row.partition
    place = [where.topic, str(where.partition)]
    return [*place, *epoch, offset, _shown(row.log_end_offset), _shown(row.lag), *who]


def members(group: GroupDescription, *, verbose: bool) -> Iterator[str]:
    """The members of the group; verbose: with epochs and assignments."""
    every = group.members
    is_static = any(member.instance_id for member in every)
    is_migrating = {True, False} <= {member.is_upgraded for member in every}
    heads = ["GROUP", "CONSUMER-ID", *(["GROUP-INSTANCE-ID"] if is_static else [])]
    heads += ["HOST", "CLIENT-ID", "#PARTITIONS"]
    cells = [_member(group, member, is_static) for member in every]
    widths = [_widest(cells, column, len(head)) for column, head in enumerate(heads[:-1])] + [WIDTH]
    if verbose:
        heads += ["CURRENT-EPOCH", "CURRENT-ASSIGNMENT", "TARGET-EPOCH", "TARGET-ASSIGNMENT"]
        details = [_details(group, member) for member in every]
        widths += [WIDTH, _widest(details, 1, 20), WIDTH, _widest(details, 3, 20)]
        cells = [[*cell, *more] for cell, more in zip(cells, details, strict=True)]
        if is_migrating:
            heads.append("UPGRADED")
            widths.append(0)
            cells = [
                [*cell, _shown(member.is_upgraded).lower()]
                for cell, member in zip(cells, every, strict=True)
            ]
    end = "" if verbose else " "
    yield ""
    yield _line(widths, heads) + end
    for cell in cells:
        yield _line(widths, cell) + end


def _member(group: GroupDescription, member: MemberDescription, is_static: bool) -> list[str]:
    instance = [member.instance_id] if is_static else []
    count = str(len(member.assignment))
    return [group.name, member.id, *instance, member.host, member.client_id, count]


def _details(group: GroupDescription, member: MemberDescription) -> list[str]:
    return [
        _shown(member.epoch),
        _assignment(member.assignment),
        _shown(group.target_epoch),
        _assignment(member.target),
    ]


def _assignment(partitions: Iterable[TopicPartition]) -> str:
    by_topic = groupby(sorted(partitions), key=lambda one: one.topic)
    topics = (
        f"{topic}:{','.join(str(one.partition) for one in members)}" for topic, members in by_topic
    )
    return ";".join(topics) or MISSING


def state(group: GroupDescription, *, verbose: bool) -> Iterator[str]:
    """The coordinator, the assignor, the state and the number of members."""
    node, host, port = group.coordinator
    coordinator = f"{host}:{port}  ({node})"
    heads = ["GROUP", "COORDINATOR (ID)", "ASSIGNMENT-STRATEGY", "STATE"]
    cells = [group.name, coordinator, group.assignor or MISSING, group.state]
    widths = [max(WIDTH, len(group.name)), max(25, len(coordinator)), 20, 20]
    if verbose:
        heads += ["GROUP-EPOCH", "TARGET-ASSIGNMENT-EPOCH"]
        cells += [_shown(group.epoch), _shown(group.target_epoch)]
        widths += [15, 25]
    yield ""
    yield _line([*widths, 0], [*heads, "#MEMBERS"])
    yield _line([*widths, 0], [*cells, len(group.members)])


def new_offsets(plan: Mapping[str, Mapping[TopicPartition, Offset]]) -> Iterator[str]:
    """The offsets that a reset sets."""
    cells = [
        [group, where.topic, where.partition, offset]
        for group, offsets in plan.items()
        for where, offset in sorted(offsets.items())
    ]
    groups = max([WIDTH, *map(len, plan)])
    widths = [groups, _widest(cells, 1), 10, 0]
    yield ""
    if plan:
        yield _line(widths, ["GROUP", "TOPIC", "PARTITION", "NEW-OFFSET"])
    for cell in cells:
        yield _line(widths, cell)


def deletions(statuses: Mapping[TopicPartition, str]) -> Iterator[str]:
    """The outcome of a deletion of offsets for each partition. A topic has partition -1."""
    cells = [
        [where.topic, where.partition if where.partition >= 0 else MISSING, status]
        for where, status in sorted(statuses.items())
    ]
    widths = [_widest(cells, 0), 10, WIDTH]
    yield ""
    yield _line(widths, ["TOPIC", "PARTITION", "STATUS"])
    for cell in cells:
        yield _line(widths, cell)


def _widest(cells: Sequence[Row], column: int, least: int = WIDTH) -> int:
    return max([least, WIDTH, *(len(str(cell[column])) for cell in cells)])


def _line(widths: Sequence[int], cells: Row) -> str:
    return " ".join(str(cell).ljust(width) for cell, width in zip(cells, widths, strict=True))


def _shown(value: object | None) -> str:
    return MISSING if value is None else str(value)
