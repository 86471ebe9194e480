"""JAAS entries, as Kafka writes them in `sasl.jaas.config`.

An entry is a login module, a control flag, and options: `module required name="value" ...;`
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

_ENTRY = re.compile(r"\s*(?P<module>[\w.$]+)\s+(?P<flag>\w+)(?P<options>.*?);?\s*", re.DOTALL)
_OPTION = re.compile(
    r"""\s*([\w.\-@]+)\s*=\s*(?:"((?:[^"\\]|\\.)*)"|'((?:[^'\\]|\\.)*)'|([^\s;"']+))"""
)
_FLAGS = ("required", "requisite", "sufficient", "optional")
_ESCAPED = re.compile(r"\\(.)")


class BadJaas(ValueError):
    """A text is not a JAAS entry. The message does not repeat the text, which has passwords."""


@dataclass(frozen=True, slots=True)
class JaasEntry:
    module: str
    options: Mapping[str, str] = field(default_factory=dict, repr=False)
    """The options with their values, which no text shows, because some are passwords."""

    def users(self) -> dict[str, str]:
        """The names and passwords of the users that a server knows: `user_name="password"`."""
        prefix = "user_"
        return {
            name.removeprefix(prefix): value
            for name, value in self.options.items()
            if name.startswith(prefix)
        }


def parse_jaas(text: str) -> JaasEntry:
    """Parse one entry; raise BadJaas if the text is anything else."""
    found = _ENTRY.fullmatch(text)
    if found is None:
        raise BadJaas("it is not a login module, a control flag and options, ended by a semicolon")
    if found["flag"].lower() not in _FLAGS:
        raise BadJaas(f"the control flag is none of {', '.join(_FLAGS)}")
    rest, position, options = found["options"], 0, {}
    while rest[position:].strip():
        option = _OPTION.match(rest, position)
        if option is None:
            raise BadJaas('an option is not name="value"')
        name, double, single, bare = option.groups()
        quoted = double if double is not None else single
        options[name] = bare if quoted is None else _ESCAPED.sub(r"\1", quoted)
        position = option.end()
    return JaasEntry(found["module"], options)
