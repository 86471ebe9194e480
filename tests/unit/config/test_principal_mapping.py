"""The rules of ssl.principal.mapping.rules. The expected names are those of Apache Kafka 4.3.1."""

import pytest

from tidelog.config.principal_mapping import (
    BadMappingRule,
    NoMatchingRule,
    parse_mapping_rules,
    user_of,
)


@pytest.mark.parametrize(
    ("rules", "name", "user"),
    [
        ("DEFAULT", "CN=Alice,O=x", "CN=Alice,O=x"),
        ("RULE:^CN=(.*?),.*$/$1/L,DEFAULT", "CN=Alice,O=x", "alice"),
        ("RULE:^CN=(.*?),.*$/$1/L,DEFAULT", "OU=Alice,O=x", "OU=Alice,O=x"),
        (
            "RULE:^CN=(.*?),OU=(.*?)$/$1@$2/L,RULE:^.*[Cc][Nn]=([a-zA-Z0-9.]*).*$/$1/U",
            "C=a,CN=bob.x,D=1",
            "BOB.X",
        ),
        (r"RULE:^CN=(.*)$/a$9b$1\/\$1/", "CN=q", "a$9bq/$1"),
        ("RULE:^CN=(.*)$/$1/ ,RULE:^OU=(.*)$/$1/", "OU=Qq", "Qq"),
    ],
)
def test_the_first_rule_that_matches_applies(rules: str, name: str, user: str) -> None:
    assert user_of(parse_mapping_rules(rules), name) == user


def test_a_name_to_which_no_rule_applies_is_refused() -> None:
    with pytest.raises(NoMatchingRule):
        user_of(parse_mapping_rules("RULE:^CN=(.*)$/$1/"), "O=1")


@pytest.mark.parametrize(
    "rules",
    ["RULE:x", "rule:foo", "DEFAULT/L", "RULE:a/b/X", "RULE:^CN=(.*)$/$1/LU", "RULE:(/$1/"],
)
def test_other_texts_are_refused(rules: str) -> None:
    with pytest.raises(BadMappingRule):
        parse_mapping_rules(rules)
