"""Fetches the JSON Schemas whose ids are in the headers of a batch's values."""

from pyspark.sql import DataFrame

from tidelog_pipelines.sources.registry import Registry, RegistryClient
from tidelog_pipelines.transformations.values.framing import header
from tidelog_pipelines.transformations.values.json_validation import JsonSchema, JsonSchemas
from tidelog_pipelines.transformations.values.python_decoding import writer_keys
from tidelog_pipelines.transformations.values.strict_json import Refused

JSON = "JSON"


class RegisteredJsonSchemas:
    def __init__(self, registry: Registry) -> None:
        self._client = RegistryClient(registry)

    def of(self, records: DataFrame) -> JsonSchemas:
        """The schemas of these records, fetched if they are new."""
        usable: dict[int, JsonSchema] = {}
        refused: dict[int, str] = {}
        for id, _ in writer_keys(records, header):
            try:
                usable[id] = self._usable(id)
            except Refused as reason:
                refused[id] = str(reason)
        return JsonSchemas(usable, refused)

    def _usable(self, id: int) -> JsonSchema:
        found = self._client.schema(id)
        if found is None:
            raise Refused(f"the schema registry has no schema with id {id}")
        if found.type != JSON:
            raise Refused(f"schema {id} is of type {found.type}, not {JSON}")
        schema = JsonSchema(found.text, found.references)
        try:
            schema.validator()
        except Refused as reason:
            raise Refused(f"schema {id} cannot be used: {reason}") from None
        return schema
