"""The HTTP routes of the console: static files, JSON for pages, live streams, and changes."""

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from importlib.resources import files
from typing import Any, Protocol
from urllib.parse import quote

from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import JSONResponse, RedirectResponse, Response, StreamingResponse
from starlette.routing import Route
from starlette.types import ASGIApp, Receive, Scope, Send

from tidelog.client.client import Client
from tidelog.console.client_pool import ClientPool
from tidelog.console.guard import COOKIE, HEADERS, Guard
from tidelog.console.live import INTERVAL_SECONDS, LiveViews
from tidelog.console.views.changes import CHANGES
from tidelog.console.views.config_view import config_view
from tidelog.console.views.record_view import Search, Wanted, records_view, whole_value
from tidelog.console.views.rewind_view import Rewinder
from tidelog.model.ids import NodeId, TopicPartition
from tidelog.model.user_error import UserError

STATIC = files("tidelog.console") / "static"
KINDS = {"html": "text/html", "js": "text/javascript", "css": "text/css", "svg": "image/svg+xml"}
MOST_BODY_BYTES = 12 * 1024 * 1024
NODE_ACTIONS = ("kill", "stop", "pause", "resume", "start")


class LocalNodes(Protocol):
    """The nodes of a cluster that `tidelog up` runs on this machine."""

    def act(self, action: str, node: NodeId) -> str: ...


class Console:
    """The handlers. Requests to the cluster run in threads, because the client blocks."""

    def __init__(self, bootstrap: str, guard: Guard, local: LocalNodes | None = None) -> None:
        self._pool = ClientPool(bootstrap)
        self._live = LiveViews(self._pool)
        self._rewinder = Rewinder()
        self._guard = guard
        self._local = local

    def app(self) -> ASGIApp:
        app = Starlette(
            routes=[
                Route("/", self._index),
                Route("/static/{name}", self._static),
                Route("/api/about", self._about),
                Route("/api/view", self._view),
                Route("/api/live", self._follow),
                Route("/api/configs", self._configs),
                Route("/api/records", self._records),
                Route("/api/value", self._value),
                Route("/api/search", self._search),
                Route("/api/rewind", self._rewind),
                Route("/api/change/{name}", self._change, methods=["POST"]),
                Route("/api/node/{action}", self._node, methods=["POST"]),
            ],
            exception_handlers={UserError: _sentence, ValueError: _bad_request},
        )
        return _Guarded(app, self._guard)

    # -- pages -------------------------------------------------------------------------------------

    async def _index(self, request: Request) -> Response:
        token = request.query_params.get("token")
        if self._guard.is_token(token):
            answer = RedirectResponse("/", 303)
            answer.set_cookie(COOKIE, token or "", httponly=True, samesite="strict")
            return answer
        return _file("index.html")

    async def _static(self, request: Request) -> Response:
        return _file(request.path_params["name"])

    async def _about(self, _request: Request) -> Response:
        return JSONResponse(
            {
                "bootstrap": self._pool.bootstrap,
                "read_only": self._guard.read_only,
                "is_local": self._local is not None and not self._guard.read_only,
            }
        )

    # -- looking -----------------------------------------------------------------------------------

    async def _view(self, request: Request) -> Response:
        name = request.query_params.get("name", "")
        return JSONResponse(await run_in_threadpool(self._live.look, name))

    async def _follow(self, request: Request) -> Response:
        return _stream(self._looks(request.query_params.get("name", "")))

    async def _looks(self, name: str) -> AsyncIterator[tuple[str, Any]]:
        last: Any = None
        while True:
            try:
                answer = await run_in_threadpool(self._live.look, name)
                event = ("look", answer)
            except UserError as trouble:
                event = ("trouble", {"sentence": str(trouble)})
            yield event if event != last else ("same", {})
            last = event
            await asyncio.sleep(INTERVAL_SECONDS)

    async def _configs(self, request: Request) -> Response:
        topic = request.query_params.get("topic", "")
        return await self._ask(lambda client: config_view(client, topic))

    async def _records(self, request: Request) -> Response:
        given, where = request.query_params, _partition(request)
        limit = int(given.get("limit", "50"))
        return await self._ask(
            lambda client: records_view(client, where, given.get("at", ""), limit)
        )

    async def _value(self, request: Request) -> Response:
        given, where = request.query_params, _partition(request)
        offset, part = int(given.get("offset", "")), given.get("part", "value")

        def read() -> bytes:
            with self._pool.borrow() as client:
                return whole_value(client, where, offset, part)

        name = quote(f"{where}-{offset}.{part}")
        return Response(
            await run_in_threadpool(read),
            media_type="application/octet-stream",
            headers={"content-disposition": f"attachment; filename*=UTF-8''{name}"},
        )

    async def _rewind(self, request: Request) -> Response:
        where, at = _partition(request), request.query_params.get("at")
        if at is None:
            return await self._ask(lambda client: self._rewinder.timeline(client, where))
        moment = int(at)
        return await self._ask(lambda client: self._rewinder.moment(client, where, moment))

    async def _search(self, request: Request) -> Response:
        given = request.query_params
        text = given.get("text", "").encode()
        if not text:
            raise UserError("'text' is missing.")
        chosen = [int(one) for one in given.getlist("partition")]
        return _stream(self._found(given.get("topic", ""), chosen, text))

    async def _found(
        self, topic: str, partitions: list[int], text: bytes
    ) -> AsyncIterator[tuple[str, Any]]:
        client = Client(self._pool.bootstrap)
        try:
            search = await run_in_threadpool(Search, client, topic, partitions, Wanted(text))
            while not search.is_done:
                yield "found", await run_in_threadpool(search.step)
            yield "end", {"read": search.read, "found": search.found}
        except UserError as trouble:
            yield "trouble", {"sentence": str(trouble)}
        finally:
            client.__exit__(None, None, None)

    # -- changing ----------------------------------------------------------------------------------

    async def _change(self, request: Request) -> Response:
        change = CHANGES.get(request.path_params["name"])
        if change is None:
            raise UserError(f"there is no change '{request.path_params['name']}'.")
        fields = await _body(request)
        return await self._ask(lambda client: change(client, fields))

    async def _node(self, request: Request) -> Response:
        action, node = request.path_params["action"], (await _body(request)).get("node")
        if self._local is None:
            raise UserError("only nodes of a cluster that `tidelog up` runs here can be changed.")
        if action not in NODE_ACTIONS or not isinstance(node, int):
            raise UserError(f"'{action}' with node {node!r} is not an action.")
        said = await run_in_threadpool(self._local.act, action, node)
        return JSONResponse({"sentence": said})

    async def _ask(self, look: Callable[[Client], dict[str, Any]]) -> Response:
        def ask() -> dict[str, Any]:
            with self._pool.borrow() as client:
                return look(client)

        return JSONResponse(await run_in_threadpool(ask))


def _partition(request: Request) -> TopicPartition:
    given = request.query_params
    return TopicPartition(given.get("topic", ""), int(given.get("partition", "0")))


async def _body(request: Request) -> dict[str, Any]:
    length = int(request.headers.get("content-length", "0"))
    if length > MOST_BODY_BYTES:
        raise UserError(f"at most {MOST_BODY_BYTES} bytes can be sent.")
    try:
        found = json.loads(await request.body() or b"{}")
    except (ValueError, RecursionError):
        raise UserError("the request is not JSON.") from None
    if not isinstance(found, dict):
        raise UserError("the request is not a JSON object.")
    return found


def _file(name: str) -> Response:
    kind = KINDS.get(name.rpartition(".")[2])
    found = STATIC / name
    if kind is None or "/" in name or not found.is_file():
        return JSONResponse({"sentence": "there is no such file."}, 404)
    return Response(found.read_bytes(), media_type=kind)


async def _sentence(_request: Request, trouble: Exception) -> Response:
    return JSONResponse({"sentence": str(trouble)}, 400)


async def _bad_request(_request: Request, _error: Exception) -> Response:
    return JSONResponse({"sentence": "a number in the request is not a number."}, 400)


def _stream(events: AsyncIterator[tuple[str, Any]]) -> Response:
    async def lines() -> AsyncIterator[bytes]:
        async for name, data in events:
            yield f"event: {name}\ndata: {json.dumps(data)}\n\n".encode()

    return StreamingResponse(lines(), media_type="text/event-stream")


class _Guarded:
    """Asks the guard before the routes, and adds its headers to every answer."""

    def __init__(self, app: ASGIApp, guard: Guard) -> None:
        self._app = app
        self._guard = guard

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        request = Request(scope)
        refusal = self._guard.refusal(
            request.method,
            request.headers,
            request.cookies.get(COOKIE),
            request.query_params.get("token"),
        )

        async def send_guarded(message: Any) -> None:
            if message["type"] == "http.response.start":
                extra = [(key.encode(), value.encode()) for key, value in HEADERS.items()]
                message = {**message, "headers": [*message["headers"], *extra]}
            await send(message)

        if refusal is not None:
            answer = JSONResponse({"sentence": refusal.sentence}, refusal.status)
            await answer(scope, receive, send_guarded)
            return
        await self._app(scope, receive, send_guarded)
