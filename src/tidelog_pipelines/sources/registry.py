"""A client of a schema registry with Confluent's REST API.

The schema of an id never changes, so each schema is fetched once. If the registry does not have an
id, the records with this id are bad. If the registry does not answer, the job tries again later.
"""

import base64
import http.client
import json
import urllib.error
import urllib.request
from typing import Any, NamedTuple
from urllib.parse import quote, unquote, urlsplit

from tidelog_pipelines.failures import REGISTRY_UNREACHABLE, JobFailed

ANSWER_SECONDS = 10.0
ACCEPT = "application/vnd.schemaregistry.v1+json, application/json"
NOT_FOUND, UNAUTHORIZED, FORBIDDEN, TOO_MANY = 404, 401, 403, 429


class RegistryUnreachable(JobFailed):
    """The registry does not answer, which may be temporary."""


class RegistryRefused(JobFailed):
    """The registry answers, but refuses the request or sends an unexpected answer."""


class Registry(NamedTuple):
    """The address of a registry, in plain values that a Connect server can unpickle."""

    url: str
    credentials: str = ""
    """`user:password`. If empty, the credentials in the URL are used, if there are any."""


class RegisteredSchema(NamedTuple):
    """A schema, and the names and texts of the schemas that it refers to, innermost first."""

    type: str
    """AVRO, JSON or PROTOBUF."""
    text: str
    references: tuple[tuple[str, str], ...] = ()


class RegistryClient:
    def __init__(self, registry: Registry) -> None:
        parts = urlsplit(registry.url)
        self._base = f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}{parts.path}".rstrip("/")
        self._headers = {"Accept": ACCEPT}
        own = parts.netloc.rpartition("@")[0]
        if credentials := registry.credentials or unquote(own):
            encoded = base64.b64encode(credentials.encode()).decode()
            self._headers["Authorization"] = f"Basic {encoded}"
        self._known: dict[int, RegisteredSchema] = {}

    def require(self) -> None:
        """Raise unless the registry answers and accepts the credentials."""
        self._get("/schemas/types")

    def schema(self, schema_id: int) -> RegisteredSchema | None:
        """The schema of an id. None if the registry does not have the id."""
        if schema_id not in self._known:
            found = self._get(f"/schemas/ids/{schema_id}")
            if found is None:
                return None
            self._known[schema_id] = self._complete(found, f"schema {schema_id}")
        return self._known[schema_id]

    def _complete(self, found: Any, what: str) -> RegisteredSchema:
        try:
            references: dict[str, str] = {}
            self._follow(found, references)
            kind = found.get("schemaType") or "AVRO"
            return RegisteredSchema(kind, found["schema"], tuple(references.items()))
        except (KeyError, TypeError, AttributeError):
            raise RegistryRefused(
                f"the schema registry at {self._base} answers for {what} with something else; is "
                "--schema-registry right?"
            ) from None

    def _follow(self, found: Any, references: dict[str, str]) -> None:
        """Collect the schemas that a schema refers to, directly or through other schemas."""
        for reference in found.get("references") or ():
            if reference["name"] in references:
                continue
            subject, version = quote(reference["subject"], safe=""), reference["version"]
            inner = self._get(f"/subjects/{subject}/versions/{version}?deleted=true")
            if inner is None:
                raise RegistryRefused(
                    f"the schema registry at {self._base} does not have version {version} of "
                    f"{reference['subject']}, to which a schema refers."
                )
            self._follow(inner, references)
            references[reference["name"]] = inner["schema"]

    def _get(self, path: str) -> Any:
        """The parsed JSON answer. None if the registry reports that it does not have the schema."""
        request = urllib.request.Request(self._base + path, headers=self._headers)
        try:
            with urllib.request.urlopen(request, timeout=ANSWER_SECONDS) as answer:
                return json.load(answer)
        except urllib.error.HTTPError as error:
            return self._refusal(error)
        except (OSError, http.client.HTTPException) as error:
            reason = getattr(error, "reason", None) or error
            raise self._unreachable(str(reason)) from None
        except ValueError:
            raise RegistryRefused(
                f"{self._base}{path} is not an answer of a schema registry; is --schema-registry "
                "right?"
            ) from None

    def _refusal(self, error: urllib.error.HTTPError) -> None:
        """Return None if the registry does not have the schema. Raise for any other error."""
        with error:
            body = error.read()
        if error.code in (UNAUTHORIZED, FORBIDDEN):
            raise RegistryRefused(
                f"the schema registry at {self._base} refuses the credentials (status "
                f"{error.code}); give them with --schema-registry-auth."
            )
        if error.code == TOO_MANY or error.code >= 500:
            raise self._unreachable(f"status {error.code}")
        if error.code == NOT_FOUND and _is_of_a_registry(body):
            return
        raise RegistryRefused(
            f"the schema registry at {self._base} answers with status {error.code}; is "
            "--schema-registry right?"
        )

    def _unreachable(self, reason: str) -> RegistryUnreachable:
        return RegistryUnreachable(
            f"{REGISTRY_UNREACHABLE} at {self._base} ({reason}); is it up, and --schema-registry "
            "right?"
        )


def _is_of_a_registry(body: bytes) -> bool:
    """Whether the body of a 404 comes from a schema registry.

    If not, the address is probably wrong.
    """
    try:
        found = json.loads(body)
    except ValueError:
        return False
    return isinstance(found, dict) and str(found.get("error_code", "")).startswith("404")
