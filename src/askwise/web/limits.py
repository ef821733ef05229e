"""The gate every request goes through: who may ask, how much, how fast, and what every answer carries.

One plain ASGI layer. It reads the whole body before anything else happens, so that nothing behind it has to think about slow or
endless bodies.
"""

from __future__ import annotations

import asyncio
import hmac
import json
import time
from collections import OrderedDict
from collections.abc import Awaitable, Callable, MutableMapping
from http.cookies import CookieError, SimpleCookie
from typing import Any

from askwise.web.logs import Log, Metrics
from askwise.web.settings import Settings

Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
App = Callable[[MutableMapping[str, Any], Receive, Send], Awaitable[None]]

OPEN = ("/health", "/login", "/static/")  # without a token
MACHINES = ("/api/", "/metrics")  # these take the token only as a header, so no page of somebody else can use a cookie
LOCAL = {"localhost", "127.0.0.1", "[::1]", "::1"}
COOKIE = "askwise"
DRAIN = 64 << 20  # bytes of a body that is too large that are still read, and thrown away, so that the client hears the answer

CONTENT_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; form-action 'self'; "
    "base-uri 'none'; frame-ancestors 'none'"
)
HEADERS = [
    (b"content-security-policy", CONTENT_POLICY.encode()),
    (b"x-content-type-options", b"nosniff"),
    (b"x-frame-options", b"DENY"),
    (b"referrer-policy", b"no-referrer"),
    (b"cross-origin-opener-policy", b"same-origin"),
    (b"cross-origin-resource-policy", b"same-origin"),
    (b"permissions-policy", b"camera=(), geolocation=(), microphone=()"),
]


class Refused(Exception):
    """A request that is answered by the gate: a status and one sentence."""

    def __init__(self, status: int, words: str, *headers: tuple[bytes, bytes]) -> None:
        super().__init__(words)
        self.status, self.words, self.headers = status, words, list(headers)


class Rate:
    """A bucket of requests for each client: it fills at `rate` per second and holds two seconds' worth."""

    def __init__(self, rate: float, clients: int = 10_000) -> None:
        self.rate, self.most, self.clients = rate, max(2 * rate, 1.0), clients
        self.buckets: OrderedDict[str, tuple[float, float]] = OrderedDict()  # client: what was left, and when

    def wait(self, client: str, now: float) -> float:
        """Seconds until this client may ask again; 0: it may, and this counts as asked."""
        if not self.rate:
            return 0.0
        left, then = self.buckets.pop(client, (self.most, now))
        left = min(left + (now - then) * self.rate, self.most)
        allowed = left >= 1
        self.buckets[client] = (left - allowed, now)
        if len(self.buckets) > self.clients:
            self.buckets.popitem(last=False)  # whoever was away longest starts again
        return 0.0 if allowed else (1 - left) / self.rate


def cookie_for(token: str) -> str:
    """What a browser keeps instead of the token itself."""
    return hmac.new(token.encode(), b"askwise page", "sha256").hexdigest()


class Gate:
    """See the top of this file."""

    def __init__(self, app: App, settings: Settings, log: Log, metrics: Metrics) -> None:
        self.app, self.settings, self.log, self.metrics = app, settings, log, metrics
        self.rate = Rate(settings.limits.rate)
        self.cookie = None if settings.token is None else cookie_for(settings.token)

    async def __call__(self, scope: MutableMapping[str, Any], receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self.app(scope, receive, send)
            return
        if scope["type"] != "http":  # no websockets
            await send({"type": "websocket.close", "code": 1003})
            return
        began, status = time.perf_counter(), 0
        self.metrics.now += 1

        async def sending(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                message["headers"] = [*message["headers"], *HEADERS]
                if not any(name == b"cache-control" for name, _ in message["headers"]):
                    message["headers"].append((b"cache-control", b"no-store"))
            await send(message)

        try:
            async with asyncio.timeout(None) as clock:
                body = await self._admit(scope, receive, clock)
                clock.reschedule(None)
            await self.app(scope, receive if body is None else _whole(body, receive), sending)
        except Refused as no:
            await _answer(sending, scope["path"], no)
        except TimeoutError:
            seconds = self.settings.limits.time_limit
            words = f"the request did not arrive within {seconds:g} s; send it at once"
            await _answer(sending, scope["path"], Refused(408, words, (b"connection", b"close")))
        except Exception as error:  # the one place where our own mistakes end up: the service goes on
            self.log.failure(error, route=_route(scope))
            if not status:
                await _answer(sending, scope["path"], Refused(500, "the service made a mistake; its log says where"))
        finally:
            seconds = time.perf_counter() - began
            self.metrics.now -= 1
            route = _route(scope)
            self.metrics.request(route, scope["method"], status, seconds)
            self.log.write("request", method=scope["method"], route=route, status=status, ms=round(1e3 * seconds, 2),
                           client=(scope.get("client") or ("-",))[0], **scope.get("askwise", {}))  # fmt: skip

    async def _admit(self, scope: MutableMapping[str, Any], receive: Receive, clock: asyncio.Timeout) -> bytes | None:
        """The body of a request that may be answered; None where there is none."""
        headers, path = dict(scope["headers"]), scope["path"]
        if self.settings.local:
            host = headers.get(b"host", b"").decode("latin-1")
            name = host if host.endswith("]") else host.rpartition(":")[0] or host
            if name.lower() not in LOCAL:
                raise Refused(421, "this service answers only under the name localhost; start it with --host for other names")
        wait = self.rate.wait((scope.get("client") or ("-",))[0], time.monotonic())
        if wait:
            raise Refused(429, f"more than {self.rate.rate:g} requests per second from one client; wait a moment",
                          (b"retry-after", str(int(wait) + 1).encode()))  # fmt: skip
        if self.settings.token is not None and not path.startswith(OPEN):
            self._authorised(path, headers)
        if scope["method"] in ("GET", "HEAD", "OPTIONS"):
            return None
        if scope["method"] == "POST":
            _content_type(path, headers)
        clock.reschedule(asyncio.get_running_loop().time() + self.settings.limits.time_limit)
        return await self._body(headers, receive)

    def _authorised(self, path: str, headers: dict[bytes, bytes]) -> None:
        assert self.settings.token is not None
        assert self.cookie is not None
        kind, _, given = headers.get(b"authorization", b"").partition(b" ")
        if kind.lower() == b"bearer" and hmac.compare_digest(given.strip(), self.settings.token.encode()):
            return
        if path.startswith(MACHINES):
            words = "this needs the header 'Authorization: Bearer TOKEN' with the service's token"
            raise Refused(401, words, (b"www-authenticate", b"Bearer"))
        try:
            cookie = SimpleCookie(headers.get(b"cookie", b"").decode("latin-1")).get(COOKIE)
        except CookieError:
            cookie = None
        if cookie is None or not hmac.compare_digest(cookie.value.encode(), self.cookie.encode()):
            raise Refused(303, "log in first", (b"location", b"/login"))

    async def _body(self, headers: dict[bytes, bytes], receive: Receive) -> bytes:
        most = self.settings.limits.max_body
        too_much = Refused(413, f"the request is larger than {most} bytes; send less at once", (b"connection", b"close"))
        length = headers.get(b"content-length", b"")
        if length.isdigit() and int(length) > DRAIN:
            raise too_much
        parts, size = [], 0
        while True:
            message = await receive()
            if message["type"] != "http.request":
                raise Refused(400, "the client went away")
            part = message.get("body", b"")
            size += len(part)
            if size <= most:
                parts.append(part)
            elif size > DRAIN:
                raise too_much
            else:
                parts.clear()
            if not message.get("more_body", False):
                break
        if size > most:
            raise too_much
        return parts[0] if len(parts) == 1 else b"".join(parts)


def _content_type(path: str, headers: dict[bytes, bytes]) -> None:
    kind, _, more = headers.get(b"content-type", b"").decode("latin-1").lower().partition(";")
    right = "application/json" if path.startswith("/api/") else "application/x-www-form-urlencoded"
    charset = more.replace(" ", "").replace('"', "")
    if kind.strip() != right or charset not in ("", "charset=utf-8"):
        raise Refused(415, f"the content type is {kind.strip()[:60]!r}; it must be {right}, in UTF-8")
    if headers.get(b"content-encoding", b"identity") != b"identity":
        raise Refused(415, "the body is compressed; send it as it is")


def _whole(body: bytes, receive: Receive) -> Receive:
    """Hands over a body that is there, then whatever comes after it."""
    given = False

    async def whole() -> Message:
        nonlocal given
        if given:
            return await receive()
        given = True
        return {"type": "http.request", "body": body, "more_body": False}

    return whole


def _route(scope: MutableMapping[str, Any]) -> str:
    """The pattern of the path, of which there are only some."""
    return getattr(scope.get("route"), "path", "other")


async def _answer(send: Send, path: str, no: Refused) -> None:
    machine = path.startswith(MACHINES) or path in ("/health", "/openapi.json")
    text, kind = (
        (json.dumps({"error": no.words}), "application/json") if machine else (no.words + "\n", "text/plain; charset=utf-8")
    )
    headers = [(b"content-type", kind.encode()), (b"content-length", str(len(text.encode())).encode()), *no.headers]
    await send({"type": "http.response.start", "status": no.status, "headers": headers})
    await send({"type": "http.response.body", "body": text.encode()})
