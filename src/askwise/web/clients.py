"""Who asks: the client behind a proxy, the name it asks for, the page it comes from, and how fast each may ask."""

from __future__ import annotations

import re
from collections import OrderedDict
from collections.abc import MutableMapping
from typing import Any

from askwise.web.settings import Proxies, is_trusted, parsed

Headers = dict[bytes, bytes]
SAFE = ("GET", "HEAD", "OPTIONS")  # methods that change nothing
METHODS = {*SAFE, "POST", "PUT", "PATCH", "DELETE", "TRACE", "CONNECT"}
LOCAL = re.compile(r"(localhost|127\.0\.0\.1|\[::1\]|::1)(:[0-9]{1,5})?", re.IGNORECASE)


class Refused(Exception):
    """A request that is answered by the guard: a status and one sentence."""

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
        left, wait = refilled(left, now - then, self.rate, self.most)
        self.buckets[client] = (left, now)
        if len(self.buckets) > self.clients:
            self.buckets.popitem(last=False)  # whoever was away longest starts again
        return wait


def refilled(left: float, seconds: float, rate: float, most: float) -> tuple[float, float]:
    """What is left in a bucket after these seconds and one more request, and how long that has to wait: 0 if it need not."""
    left = min(left + seconds * rate, most)
    return (left - 1, 0.0) if left >= 1 else (left, (1 - left) / rate)


def digits(text: str) -> int | None:
    """A whole number in plain digits, of which there are not many; None if it is none. `isdigit` also takes ², ٣ and others."""
    return int(text) if re.fullmatch(r"[0-9]{1,20}", text) else None


def address(scope: MutableMapping[str, Any]) -> str:
    """Of the client."""
    return str((scope.get("client") or ("-",))[0])


def method(scope: MutableMapping[str, Any]) -> str:
    """For counters and the log: one of a few names, whatever was sent."""
    return scope["method"] if scope["method"] in METHODS else "other"


def forwarded(scope: MutableMapping[str, Any], headers: Headers, proxies: Proxies) -> None:
    """What a proxy of ours says about the client: who it is, and whether it came by TLS."""
    if not is_trusted(address(scope), proxies):
        return
    if headers.get(b"x-forwarded-proto", b"").strip().lower() == b"https":
        scope["scheme"] = "https"
    # each proxy adds whom it heard, so the last that is none of ours is the client; what stands before it may be made up
    for part in reversed(headers.get(b"x-forwarded-for", b"").decode("latin-1").split(",")):
        try:
            name = str(parsed(part.strip()))
        except ValueError:
            return
        scope["client"] = (name, 0)
        if not is_trusted(name, proxies):
            return


def check_host(headers: Headers) -> None:
    """Whether a service of this machine was asked for under a name of this machine."""
    if not LOCAL.fullmatch(headers.get(b"host", b"").decode("latin-1")):
        raise Refused(421, "this service answers only under the name localhost; start it with --host for other names")


def check_origin(scope: MutableMapping[str, Any], headers: Headers) -> None:
    """Whether a request that may change something comes from our own pages, or from no page at all.

    Browsers say so, and pages cannot change what they say; other programs say nothing.
    """
    if scope["method"] in SAFE:
        return
    site = headers.get(b"sec-fetch-site")
    if site is not None:
        ours = site in (b"same-origin", b"none")
    else:
        origin = headers.get(b"origin")
        # a proxy that speaks TLS changes the scheme, so only the rest is compared
        ours = origin is None or origin.lower().partition(b"://")[2] == headers.get(b"host", b"").lower() != b""
    if not ours:
        raise Refused(403, "this was sent by a page of another site; only the service's own pages may send it")
