"""The guard that every request goes through: who may ask, how much, how fast, and what every answer carries.

One plain ASGI layer. It reads the whole body before anything else happens, so that nothing behind it has to think about slow or
endless bodies.
"""

from __future__ import annotations

import asyncio
import hmac
import json
import time
from collections.abc import Awaitable, Callable, MutableMapping
from http.cookies import CookieError, SimpleCookie
from typing import Any

from askwise.web.clients import SAFE, Rate, Refused, address, check_host, check_origin, digits, forwarded, method
from askwise.web.logs import Log, Metrics
from askwise.web.settings import ServiceSettings

Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
App = Callable[[MutableMapping[str, Any], Receive, Send], Awaitable[None]]

OPEN = ("/health", "/login", "/static/")  # without a token
MACHINES = ("/api/", "/metrics")  # these take the token only as a header, so no page of somebody else can use a cookie
COOKIE = "askwise"
CLOSE = (b"connection", b"close")
PAUSE = 0.01  # seconds until a refusal is answered while others ask: who sends nothing else leaves the time to them
DRAIN = 64 << 20  # bytes of a body that is too large that are still read, and thrown away, so that the client hears the answer

CONTENT_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; form-action 'self'; "
    "base-uri 'none'; frame-ancestors 'none'"
)
HEADERS = [
    (b"content-security-policy", CONTENT_POLICY.encode()),
    (b"x-content-type-options", b"nosniff"),
    (b"x-frame-options", b"DENY"),
    (b"referrer-policy", b"same-origin"),
    (b"cross-origin-opener-policy", b"same-origin"),
    (b"cross-origin-resource-policy", b"same-origin"),
    (b"permissions-policy", b"camera=(), geolocation=(), microphone=()"),
]


def cookie_for(token: str) -> str:
    """What a browser keeps instead of the token itself."""
    return hmac.new(token.encode(), b"askwise page", "sha256").hexdigest()


class RequestGuard:
    """See the top of this file."""

    def __init__(self, app: App, settings: ServiceSettings, log: Log, metrics: Metrics) -> None:
        self.app, self.settings, self.log, self.metrics = app, settings, log, metrics
        self.rate = Rate(settings.limits.rate)

    async def __call__(self, scope: MutableMapping[str, Any], receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self.app(scope, receive, send)
            return
        if scope["type"] != "http":  # no websockets
            await send({"type": "websocket.close", "code": 1003})
            return
        start, status, refused = time.perf_counter(), 0, False
        self.metrics.in_progress += 1
        self.metrics.received += 1

        async def sending(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                if status >= 400 and self.metrics.in_progress > 1:
                    await asyncio.sleep(PAUSE)
                message["headers"] = [*message["headers"], *HEADERS]
                if not any(name == b"cache-control" for name, _ in message["headers"]):
                    message["headers"].append((b"cache-control", b"no-store"))
            await send(message)

        headers = dict(scope["headers"])
        try:
            body = await self._admitted(scope, headers, receive)
            await self.app(scope, receive if body is None else _whole(body, receive), sending)
        except Refused as no:
            refused = True
            await _answer(sending, scope["path"], no)
        except Exception as error:  # the one place where our own mistakes end up: the service goes on
            self.log.failure(error, route=_route(scope))
            if not status:
                await _answer(sending, scope["path"], Refused(500, "the service made a mistake; its log says where"))
        finally:
            seconds = time.perf_counter() - start
            self.metrics.in_progress -= 1
            route, name = "refused" if refused else _route(scope), method(scope)
            self.metrics.request(route, name, status, seconds)
            more = {"ms": round(1e3 * seconds, 2), "client": address(scope), **scope.get("askwise", {})}
            self.log.write("request", method=name, route=route, status=status, **more)

    async def _admitted(self, scope: MutableMapping[str, Any], headers: dict[bytes, bytes], receive: Receive) -> bytes | None:
        """The body of a request that may be answered; None where there is none. Whatever comes of it, the body has been
        received, or the connection is closed: nobody keeps one by announcing what never comes."""
        announced = b"transfer-encoding" in headers or headers.get(b"content-length", b"0").strip(b"0") != b""
        no: Refused | None = None
        try:
            self._admit(scope, headers)
        except Refused as error:
            if not announced:
                raise
            if b"expect" in headers:  # it has not begun to send it
                error.headers.append(CLOSE)
                raise
            no = error
        if not announced:
            return None if scope["method"] in SAFE else b""
        try:
            async with asyncio.timeout(self.settings.limits.time_limit):
                body = await self._body(headers, receive, keep=no is None)
        except TimeoutError:
            no = no or Refused(408, f"the request did not arrive within {self.settings.limits.time_limit:g} s; send it at once")
            no.headers.append(CLOSE)
        if no is not None:
            raise no
        return body

    def _admit(self, scope: MutableMapping[str, Any], headers: dict[bytes, bytes]) -> None:
        """Whether a request may be answered, by its head."""
        path = scope["path"]
        forwarded(scope, headers, self.settings.proxies)
        if self.settings.local:
            check_host(headers)
        wait = self.rate.wait(address(scope), time.monotonic())
        if wait:
            words = f"more than {self.rate.rate:g} requests per second from one client; wait a moment"
            raise Refused(429, words, (b"retry-after", b"%d" % (int(wait) + 1)))
        check_origin(scope, headers)
        if self.settings.token is not None and not path.startswith(OPEN):
            self._authorise(self.settings.token, path, headers)
        if scope["method"] == "POST":
            _content_type(path, headers)

    def _authorise(self, token: str, path: str, headers: dict[bytes, bytes]) -> None:
        kind, _, sent = headers.get(b"authorization", b"").partition(b" ")
        if kind.lower() == b"bearer" and hmac.compare_digest(sent.strip(), token.encode()):
            return
        if path.startswith(MACHINES):
            words = "this needs the header 'Authorization: Bearer TOKEN' with the service's token"
            raise Refused(401, words, (b"www-authenticate", b"Bearer"))
        try:
            cookie = SimpleCookie(headers.get(b"cookie", b"").decode("latin-1")).get(COOKIE)
        except CookieError:
            cookie = None
        if cookie is None or not hmac.compare_digest(cookie.value.encode(), cookie_for(token).encode()):
            raise Refused(303, "log in first", (b"location", b"/login"))

    async def _body(self, headers: dict[bytes, bytes], receive: Receive, keep: bool) -> bytes:
        """All of it; keep: otherwise it is read, so that the client hears the answer, and thrown away."""
        most = self.settings.limits.max_body
        too_much = Refused(413, f"the request is larger than {most} bytes; send less at once", CLOSE)
        length = digits(headers.get(b"content-length", b"0").decode("latin-1"))
        if length is None:
            raise Refused(400, "the content length is no whole number", CLOSE)
        if length > DRAIN:
            raise too_much
        body, size, more = bytearray(), 0, True
        while more:
            message = await receive()
            if message["type"] != "http.request":
                raise Refused(400, "the client went away")
            part, more = message.get("body", b""), message.get("more_body", False)
            size += len(part)
            if size > DRAIN:
                raise too_much
            if size <= most and keep:
                body += part
        if size > most:
            raise too_much
        return bytes(body)


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
    first: list[Message] = [{"type": "http.request", "body": body, "more_body": False}]

    async def whole() -> Message:
        return first.pop() if first else await receive()

    return whole


def _route(scope: MutableMapping[str, Any]) -> str:
    """The pattern of the path, of which there are only some."""
    return getattr(scope.get("route"), "path", "other")


def is_for_programs(path: str) -> bool:
    """Whether those who ask for it take JSON, rather than a page."""
    return path.startswith(MACHINES) or path in ("/health", "/openapi.json")


async def _answer(send: Send, path: str, no: Refused) -> None:
    text, kind = no.words + "\n", b"text/plain; charset=utf-8"
    if is_for_programs(path):
        text, kind = json.dumps({"error": no.words}), b"application/json"
    headers = [(b"content-type", kind), (b"content-length", b"%d" % len(text.encode())), *no.headers]
    await send({"type": "http.response.start", "status": no.status, "headers": headers})
    await send({"type": "http.response.body", "body": text.encode()})
