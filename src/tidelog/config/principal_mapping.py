"""The rules of ssl.principal.mapping.rules: from the name in a certificate to a user name.

A rule is `DEFAULT`, which keeps the name, or `RULE:pattern/replacement/`, with `L` or `U` after it
for lower or upper case. The first rule whose pattern matches the whole name applies.
"""

import re
from typing import NamedTuple

_RULE = re.compile(
    r"\s*(?:(?P<default>DEFAULT)"
    r"|RULE:(?P<pattern>(?:\\.|[^\\/])*)/(?P<replacement>(?:\\.|[^\\/])*)/(?P<case>[LU]?))"
    r"\s*(?:[,\n]|$)"
)
_REFERENCE = re.compile(r"\\(.)|\$(\d)", re.DOTALL)


class BadMappingRule(ValueError):
    """A text is not a list of rules."""


class NoMatchingRule(ValueError):
    """No rule applies to a name."""


class MappingRule(NamedTuple):
    pattern: re.Pattern[str] | None
    """None for DEFAULT."""
    replacement: str = ""
    case: str = ""

    def apply(self, name: str) -> str | None:
        """The user name, or None if the rule does not apply."""
        if self.pattern is None:
            return name
        found = self.pattern.fullmatch(name)
        if found is None:
            return None
        groups = ["" if group is None else group for group in (found[0], *found.groups())]

        def insert(part: re.Match[str]) -> str:
            if part[1] is not None:
                return part[1]
            number = int(part[2])
            return groups[number] if number < len(groups) else part[0]

        user = _REFERENCE.sub(insert, self.replacement)
        return user.lower() if self.case == "L" else user.upper() if self.case == "U" else user


def parse_mapping_rules(text: str) -> tuple[MappingRule, ...]:
    """Parse the rules; raise BadMappingRule if the text is anything else."""
    rules, position, text = [], 0, text.strip()
    while position < len(text):
        found = _RULE.match(text, position)
        if found is None:
            raise BadMappingRule(f"{text[position:]!r} is not a rule")
        if found["default"]:
            rules.append(MappingRule(None))
        else:
            rules.append(_rule(found["pattern"], found["replacement"], found["case"]))
        position = found.end()
    return tuple(rules) or (MappingRule(None),)


def _rule(pattern: str, replacement: str, case: str) -> MappingRule:
    try:
        return MappingRule(re.compile(pattern), replacement, case)
    except re.error as error:
        raise BadMappingRule(f"{pattern!r} is not a regular expression: {error}") from None


def user_of(rules: tuple[MappingRule, ...], name: str) -> str:
    """The user name for the name in a certificate; raise NoMatchingRule if no rule applies."""
    for rule in rules:
        user = rule.apply(name)
        if user is not None:
            return user
    raise NoMatchingRule("no rule of ssl.principal.mapping.rules applies to its certificate")
