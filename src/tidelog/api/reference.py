"""Generates docs/protocol.md: `python -m tidelog.api.reference > docs/protocol.md`."""

from tidelog.api.registry import REGISTRY, Api

_HEAD = """\
# The protocol

The Kafka APIs that Tidelog serves. This page is generated from `src/tidelog/api/registry.py`, and a
test keeps the two equal. The docstring of each module describes the API's behaviour by version.

ApiVersions advertises exactly these APIs. As in Apache Kafka, a request for any other API or
version closes the connection. Only ApiVersions itself answers an unknown version, with
UNSUPPORTED_VERSION and the versions that it supports.

The column "needs" lists the operations that the authorizer checks for the API, if
`authorizer.class.name` is set. Which of them apply depends on the request, as in Apache Kafka.

| key | API | versions | listeners | needs | what it does | module |
|---:|---|---|---|---|---|---|
"""

_TAIL = """
Produce is advertised from version 0 on, although versions 0 to 2 are not served. librdkafka assumes
that a broker without them cannot decompress, and Apache Kafka 4 advertises the same (KIP-896).
"""


def protocol_page() -> str:
    """The whole text of docs/protocol.md."""
    return _HEAD + "".join(map(_row, REGISTRY.values())) + _TAIL


def _row(api: Api) -> str:
    versions = f"{api.min_version}-{api.max_version}"
    if api.min_version == api.max_version:
        versions = str(api.max_version)
    listeners = ", ".join(sorted(kind.value for kind in api.listeners))
    what = (api.handler.__doc__ or "").strip()
    module = api.handler.__module__.removeprefix("tidelog.")
    cells = (api.key, api.name, versions, listeners, api.rule, what, f"`{module}`")
    return f"| {' | '.join(map(str, cells))} |\n"


if __name__ == "__main__":
    print(protocol_page(), end="")
