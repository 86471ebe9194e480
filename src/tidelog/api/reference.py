"""docs/protocol.md, from the registry: `python -m tidelog.api.reference > docs/protocol.md`."""

from tidelog.api.registry import REGISTRY, Api

_HEAD = """\
# The protocol

The Kafka APIs that Tidelog serves, from `src/tidelog/api/registry.py`; a test keeps this page equal
to it. The module of each API opens with what it does in which version.

ApiVersions advertises exactly these. A request for any other API, or for a version that is not
here, closes the connection, as it does in Apache Kafka; only ApiVersions itself answers a version
that it does not know, with UNSUPPORTED_VERSION and the versions that it does.

| key | API | versions | listeners | what it does | module |
|---:|---|---|---|---|---|
"""

_TAIL = """
Produce is advertised from version 0 on, though versions 0 to 2 are not served: librdkafka takes a
broker without them for one that cannot decompress, and Apache Kafka 4 does the same (KIP-896).
"""


def protocol_page() -> str:
    """The whole page."""
    return _HEAD + "".join(map(_row, REGISTRY.values())) + _TAIL


def _row(api: Api) -> str:
    versions = f"{api.min_version}-{api.max_version}"
    if api.min_version == api.max_version:
        versions = str(api.max_version)
    listeners = ", ".join(sorted(kind.value for kind in api.listeners))
    what = (api.handler.__doc__ or "").strip()
    module = api.handler.__module__.removeprefix("tidelog.")
    return f"| {api.key} | {api.name} | {versions} | {listeners} | {what} | `{module}` |\n"


if __name__ == "__main__":
    print(protocol_page(), end="")
