"""The registry client fetches each schema once. It does not mistake a failure for an unknown id."""

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.pipelines.schema_registry import SchemaRegistry, running

from tidelog_pipelines.failures import TEMPORARY
from tidelog_pipelines.sources.registry import (
    RegisteredSchema,
    Registry,
    RegistryClient,
    RegistryRefused,
    RegistryUnreachable,
)

ENVIRONMENT = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[2] / "src")}


@pytest.fixture
def registry() -> Iterator[SchemaRegistry]:
    with running() as found:
        yield found


def test_a_schema_is_fetched_once(registry: SchemaRegistry) -> None:
    id = registry.register("t-value", '"string"')
    client = RegistryClient(Registry(registry.url + "/"))
    client.require()
    for _ in range(3):
        assert client.schema(id) == RegisteredSchema("AVRO", '"string"')
    assert registry.asked == ["/schemas/types", f"/schemas/ids/{id}"]


def test_an_unknown_id_is_asked_for_again_because_it_may_appear(registry: SchemaRegistry) -> None:
    client = RegistryClient(Registry(registry.url))
    assert client.schema(1) is None
    registry.register("t-value", '"string"')
    assert client.schema(1) == RegisteredSchema("AVRO", '"string"')


def test_references_are_fetched_innermost_first_and_each_once(registry: SchemaRegistry) -> None:
    registry.register("a/b", "inner", "PROTOBUF")
    inner = {"name": "a.proto", "subject": "a/b", "version": 1}
    registry.register("middle", "middle", "PROTOBUF", [inner])
    outer = [{"name": "m.proto", "subject": "middle", "version": 1}, inner]
    id = registry.register("outer", "outer", "PROTOBUF", outer)
    found = RegistryClient(Registry(registry.url)).schema(id)
    assert found is not None
    assert (found.type, found.text) == ("PROTOBUF", "outer")
    assert found.references == (("a.proto", "inner"), ("m.proto", "middle"))


def test_credentials_come_from_the_address_or_apart(registry: SchemaRegistry) -> None:
    registry.credentials = "reader:p@ss:word"
    id = registry.register("t-value", '"string"')
    in_url = registry.url.replace("//", "//reader:p%40ss:word@")
    for known in (Registry(in_url), Registry(registry.url, "reader:p@ss:word")):
        assert RegistryClient(known).schema(id) is not None
    with pytest.raises(RegistryRefused, match=r"refuses the credentials \(status 401\)") as refusal:
        RegistryClient(Registry(registry.url.replace("//", "//reader:secret@"))).require()
    assert "secret" not in str(refusal.value)


@pytest.mark.parametrize("status", [429, 500, 502, 503])
def test_a_registry_in_trouble_is_no_registry_without_the_schema(
    registry: SchemaRegistry, status: int
) -> None:
    registry.status = status
    with pytest.raises(RegistryUnreachable, match=f"status {status}") as failure:
        RegistryClient(Registry(registry.url)).schema(1)
    assert str(failure.value).startswith(TEMPORARY)


def test_a_registry_that_is_down_is_named(registry: SchemaRegistry) -> None:
    registry.stop()
    with pytest.raises(RegistryUnreachable, match=r"does not answer at http:.*refused"):
        RegistryClient(Registry(registry.url)).require()


def test_another_server_is_not_taken_for_a_registry(registry: SchemaRegistry) -> None:
    registry.status = 302
    with pytest.raises(RegistryRefused, match="is --schema-registry right"):
        RegistryClient(Registry(registry.url)).schema(1)


def test_a_job_without_a_registry_does_not_import_what_only_a_registry_needs() -> None:
    program = """
import sys
import tidelog_pipelines.jobs.ingest
print(sorted({"jsonschema", "referencing", "grpc_tools", "google.protobuf"} & set(sys.modules)))
"""
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True, env=ENVIRONMENT
    )
    assert done.stdout == "[]\n"
