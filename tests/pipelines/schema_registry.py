"""A schema registry in this process: the part of Confluent's REST API that clients use.

The official serializers register and look up schemas in this registry. This shows that the registry
follows the API.
"""

import base64
import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import unquote, urlsplit

SCHEMA_NOT_FOUND, SUBJECT_NOT_FOUND, VERSION_NOT_FOUND = 40403, 40401, 40402


class Missing(Exception):
    """An error of the API: its code, and its message."""


class SchemaRegistry:
    """Schemas by id and by subject.

    The registry can be stopped, and started again at the same address.
    """

    def __init__(self) -> None:
        self.credentials = ""
        self.status = 200
        """The HTTP status. If it is not 200, every request is answered with it."""
        self.asked: list[str] = []
        self.sources: dict[str, str] = {}
        """The text of .proto files by name. Serializers register the files in compiled form, in
        Base64, but a registry answers with the text.
        """
        self._schemas: list[dict[str, Any]] = []
        self._subjects: dict[str, list[int]] = {}
        self._server: ThreadingHTTPServer | None = None
        self._port = 0

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._port}"

    def start(self) -> None:
        registry = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                registry.serve(self)

            def do_POST(self) -> None:
                registry.serve(self)

            def log_message(self, *_: object) -> None: ...

        self._server = ThreadingHTTPServer(("127.0.0.1", self._port), Handler)
        self._port = self._server.server_address[1]
        threading.Thread(target=self._server.serve_forever, args=(0.02,), daemon=True).start()

    def stop(self) -> None:
        if self._server is not None:
            self._server.shutdown()
            self._server.server_close()
            self._server = None

    def register(
        self,
        subject: str,
        schema: str,
        kind: str = "AVRO",
        references: list[dict[str, Any]] | None = None,
    ) -> int:
        """Register a schema and return its id. A schema that is registered again keeps its id."""
        schema = self._source(schema) if kind == "PROTOBUF" else schema
        entry = {"schema": schema, "schemaType": kind, "references": references or []}
        if entry not in self._schemas:
            self._schemas.append(entry)
        found = self._schemas.index(entry) + 1
        versions = self._subjects.setdefault(subject, [])
        if found not in versions:
            versions.append(found)
        return found

    def _source(self, schema: str) -> str:
        """The text of a compiled .proto file.

        The compiled bytes begin with the name of the file.
        """
        try:
            compiled = base64.b64decode(schema, validate=True)
        except ValueError:
            return schema
        return self.sources[compiled[2 : 2 + compiled[1]].decode()]

    def serve(self, request: BaseHTTPRequestHandler) -> None:
        self.asked.append(request.path)
        size = int(request.headers.get("Content-Length") or 0)
        body = json.loads(request.rfile.read(size)) if size else {}
        expected = "Basic " + base64.b64encode(self.credentials.encode()).decode()
        if self.status != 200:
            status, answer = self.status, {"error_code": self.status * 100, "message": "no"}
        elif self.credentials and request.headers.get("Authorization") != expected:
            status, answer = 401, {"error_code": 401, "message": "Unauthorized"}
        else:
            try:
                status, answer = 200, self._answer(request.command, request.path, body)
            except Missing as missing:
                code, message = missing.args
                status, answer = 404, {"error_code": code, "message": message}
        raw = json.dumps(answer, separators=(",", ":")).encode()
        request.send_response(status)
        request.send_header("Content-Type", "application/vnd.schemaregistry.v1+json")
        request.send_header("Content-Length", str(len(raw)))
        request.end_headers()
        request.wfile.write(raw)

    def _answer(self, method: str, path: str, body: dict[str, Any]) -> Any:
        match [unquote(part) for part in urlsplit(path).path.strip("/").split("/")]:
            case ["schemas", "types"]:
                return ["AVRO", "JSON", "PROTOBUF"]
            case ["schemas", "ids", id]:
                if not 1 <= int(id) <= len(self._schemas):
                    raise Missing(SCHEMA_NOT_FOUND, "Schema not found")
                return _shown(self._schemas[int(id) - 1])
            case ["subjects", subject, "versions"] if method == "POST":
                kind = body.get("schemaType") or "AVRO"
                found = self.register(subject, body["schema"], kind, body.get("references"))
                return {"id": found}
            case ["subjects", subject] if method == "POST":
                return self._lookup(subject, body)
            case ["subjects", subject, "versions", version]:
                return self._version(subject, version)
        raise Missing(404, "HTTP 404 Not Found")

    def _lookup(self, subject: str, body: dict[str, Any]) -> Any:
        for number, id in enumerate(self._subjects.get(subject, []), 1):
            if self._schemas[id - 1]["schema"] in (body["schema"], self._source(body["schema"])):
                return {"subject": subject, "version": number, "id": id, "schema": body["schema"]}
        raise Missing(SCHEMA_NOT_FOUND, "Schema not found")

    def _version(self, subject: str, version: str) -> Any:
        if subject not in self._subjects:
            raise Missing(SUBJECT_NOT_FOUND, f"Subject '{subject}' not found.")
        versions = self._subjects[subject]
        number = len(versions) if version == "latest" else int(version)
        if not 1 <= number <= len(versions):
            raise Missing(VERSION_NOT_FOUND, f"Version {version} not found.")
        id = versions[number - 1]
        return {"subject": subject, "version": number, "id": id, **_shown(self._schemas[id - 1])}


def _shown(entry: dict[str, Any]) -> dict[str, Any]:
    """The answer about a schema.

    As in real registries, the type AVRO and empty references are left out.
    """
    return {name: one for name, one in entry.items() if one and one != "AVRO"}


@contextmanager
def running() -> Iterator[SchemaRegistry]:
    registry = SchemaRegistry()
    registry.start()
    try:
        yield registry
    finally:
        registry.stop()
