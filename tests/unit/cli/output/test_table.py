from tidelog.cli.output.table import table


def test_columns_are_as_wide_as_they_must_and_numbers_stand_to_the_right() -> None:
    rows = [("1", "up", "15", "-"), ("12", "starting", "-", "-")]
    assert list(table(("NODE", "STATE", "PID", "RACK"), rows)) == [
        "NODE  STATE     PID  RACK",
        "   1  up         15  -",
        "  12  starting    -  -",
    ]


def test_a_table_without_rows_has_its_heads() -> None:
    assert list(table(("A", "B"), [])) == ["A  B"]
