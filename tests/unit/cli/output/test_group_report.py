"""The columns of groups of the consumer protocol, which Tidelog's own groups do not fill yet."""

from tidelog.cli.output import group_report
from tidelog.client.administration.group_description import GroupDescription, MemberDescription
from tidelog.client.coordinators import GroupCoordinator
from tidelog.model.ids import TopicPartition

FIRST, SECOND = TopicPartition("t", 0), TopicPartition("t", 1)


def described(*members: MemberDescription) -> GroupDescription:
    return GroupDescription(
        "g", GroupCoordinator(1, "here", 9092), "Stable", "uniform", members, 3, 4
    )


def member(name: str, *, is_upgraded: bool) -> MemberDescription:
    return MemberDescription(name, "", "c", "/h", (FIRST,), (SECOND, FIRST), 2, is_upgraded)


def test_the_upgraded_column_is_shown_while_a_group_migrates() -> None:
    group = described(member("a", is_upgraded=True), member("b", is_upgraded=False))
    _, heads, *rows = group_report.members(group, verbose=True)
    assert heads.split() == [
        *("GROUP", "CONSUMER-ID", "HOST", "CLIENT-ID", "#PARTITIONS", "CURRENT-EPOCH"),
        *("CURRENT-ASSIGNMENT", "TARGET-EPOCH", "TARGET-ASSIGNMENT", "UPGRADED"),
    ]
    assert [row.split() for row in rows] == [
        ["g", "a", "/h", "c", "1", "2", "t:0", "4", "t:0,1", "true"],
        ["g", "b", "/h", "c", "1", "2", "t:0", "4", "t:0,1", "false"],
    ]
    settled = described(member("a", is_upgraded=True))
    assert "UPGRADED" not in "".join(group_report.members(settled, verbose=True))


def test_the_state_shows_the_epochs_of_the_group() -> None:
    _, heads, row = group_report.state(described(), verbose=True)
    assert heads.split()[-3:] == ["GROUP-EPOCH", "TARGET-ASSIGNMENT-EPOCH", "#MEMBERS"]
    assert row.split() == ["g", "here:9092", "(1)", "uniform", "Stable", "3", "4", "0"]
