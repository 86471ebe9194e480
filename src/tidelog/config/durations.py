"""ISO 8601 durations in days, hours, minutes and seconds, such as P1DT2H."""

import re

from tidelog.model.ids import Millis

_DURATION = re.compile(
    r"P(?:(?P<days>\d+)D)?(?:T(?:(?P<hours>\d+)H)?(?:(?P<minutes>\d+)M)?"
    r"(?:(?P<seconds>\d+)(?:\.(?P<fraction>\d{1,9}))?S)?)?",
    re.IGNORECASE,
)


def duration_ms(text: str) -> Millis | None:
    """The milliseconds of a duration that is not negative; None if the text is none."""
    found = _DURATION.fullmatch(text)
    if found is None or not any(found.groups()):
        return None
    days, hours, minutes, seconds = (
        int(found[part] or 0) for part in ("days", "hours", "minutes", "seconds")
    )
    whole = seconds + 60 * (minutes + 60 * (hours + 24 * days))
    return whole * 1000 + int((found["fraction"] or "0").ljust(3, "0")[:3])
