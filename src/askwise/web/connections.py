"""Connections: how many there may be, who has to go when there are too many, and how long a client may take.

A client that is being answered is never sent away. When it becomes crowded, those go first that never sent a whole request, then
those that have been quiet longest; so nobody keeps others out by being silent or slow. Whoever goes is closed at once, so that
file descriptors never run out.
"""

from __future__ import annotations

import asyncio
import socket
import time
from collections import Counter
from http import HTTPStatus
from itertools import chain
from typing import Any

import h11
import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol

from askwise.errors import InputError
from askwise.web.clients import Refused
from askwise.web.logs import Log, Metrics
from askwise.web.settings import Limits, Proxies, is_trusted

BACKLOG = 512  # connections that wait to be accepted
AT_ONCE = 16  # of these are accepted between two looks at what others want
ON_THE_WAY = 4 * AT_ONCE  # accepted or closed, but not yet counted or gone
OTHER_FILES = 64  # descriptors for everything else
PAUSE = 10.0  # seconds between two lines about crowds in the log


class Crowd:
    """All connections of a service."""

    def __init__(self, limits: Limits, proxies: Proxies, metrics: Metrics, log: Log) -> None:
        self.limits, self.proxies, self.metrics, self.log = limits, proxies, metrics, log
        # who is waited for, longest first: before their first whole request, and after one
        self.fresh: dict[Connection, None] = {}
        self.known: dict[Connection, None] = {}
        self.by_client: Counter[str] = Counter()
        self.closed, self.logged = 0, -PAUSE

    def enter(self, one: Connection) -> None:
        """A new connection. If there are too many, another one goes or, if all others are being answered, this one."""
        self.metrics.connections += 1
        self.by_client[one.address] += 1
        most = self.limits.max_connections_per_client
        alone = self.by_client[one.address] > most and not is_trusted(one.address, self.proxies)
        if alone or self.metrics.connections > self.limits.max_connections:
            others = (c for c in chain(self.fresh, self.known) if not alone or c.address == one.address)
            self._send_away(next(others, one))
        if not one.gone:
            self.fresh[one] = None

    def answering(self, one: Connection) -> None:
        """Its request has arrived."""
        self.fresh.pop(one, None)
        self.known.pop(one, None)

    def waiting(self, one: Connection) -> None:
        """Its answer is sent; now the next request may come."""
        if not one.gone:
            self.known[one] = None

    def leave(self, one: Connection) -> None:
        if one.gone:
            return
        one.gone = True
        self.answering(one)
        self.metrics.connections -= 1
        self.by_client[one.address] -= 1
        if not self.by_client[one.address]:
            del self.by_client[one.address]

    def _send_away(self, one: Connection) -> None:
        polite = one not in self.known  # between two requests there is nothing to answer
        self.leave(one)
        if polite:
            one.say(Refused(503, "there are too many connections; try again in a moment"))
        one.transport.abort()
        self.metrics.closed["crowded"] += 1
        self.closed += 1
        now = time.monotonic()
        if now - self.logged >= PAUSE:  # not a line for each, or the log would be what they fill
            self.log.write("crowded", closed=self.closed, connections=self.metrics.connections)
            self.closed, self.logged = 0, now


class Connection(H11Protocol):
    """One connection. It is closed when a request, or a reader of an answer, takes too long."""

    crowd: Crowd
    gone = False
    address = "-"
    waiting: asyncio.TimerHandle | None = None  # for the head of a request; the guard looks after bodies
    stuck: asyncio.TimerHandle | None = None

    def connection_made(self, transport: Any) -> None:
        super().connection_made(transport)
        self.address = str((self.client or ("-",))[0])
        self.crowd.enter(self)
        if not self.gone:
            self._wait()

    def data_received(self, data: bytes) -> None:
        if self.gone:
            return
        super().data_received(data)
        if self.conn.their_state is h11.IDLE and self.conn.trailing_data[0]:  # the head of a request has begun
            self._wait()
        else:
            self._no_longer()
        if self.conn.their_state in (h11.DONE, h11.MUST_CLOSE):
            self.crowd.answering(self)

    def on_response_complete(self) -> None:
        if self.conn.their_state is h11.SEND_BODY:  # the rest may never come
            self.transport.close()
        self.crowd.waiting(self)
        super().on_response_complete()
        if self.transport.is_closing():
            self._close()
        elif self.conn.their_state is h11.DONE:  # the next one was there already
            self.crowd.answering(self)

    def connection_lost(self, exc: Exception | None) -> None:
        self.crowd.leave(self)
        self._no_longer()
        self.resume_writing()
        super().connection_lost(exc)
        self._unset_keepalive_if_required()  # also after an error

    def pause_writing(self) -> None:
        super().pause_writing()
        self.stuck = self.loop.call_later(self.crowd.limits.time_limit, self.transport.abort)

    def resume_writing(self) -> None:
        if self.stuck is not None:
            self.stuck.cancel()
        super().resume_writing()

    def timeout_keep_alive_handler(self) -> None:
        super().timeout_keep_alive_handler()
        self._close()

    def send_400_response(self, msg: str) -> None:
        super().send_400_response(msg)
        self._close()

    def say(self, no: Refused) -> None:
        """An answer before there is a request to answer."""
        words = no.words.encode() + b"\n"
        self.transport.write(
            b"HTTP/1.1 %d %s\r\nconnection: close\r\ncontent-type: text/plain\r\ncontent-length: %d\r\n\r\n%s"
            % (no.status, HTTPStatus(no.status).phrase.encode(), len(words), words)
        )

    def _wait(self) -> None:
        if self.waiting is None:
            self.waiting = self.loop.call_later(self.crowd.limits.time_limit, self._late)

    def _no_longer(self) -> None:
        if self.waiting is not None:
            self.waiting.cancel()
        self.waiting = None

    def _late(self) -> None:
        self.waiting = None
        if self.conn.their_state is h11.IDLE and not self.transport.is_closing():
            self.say(Refused(408, "the request did not arrive in time"))
            self.crowd.metrics.closed["late"] += 1
            self._close()

    def _close(self) -> None:
        """Closes it as soon as what was written is sent, and after a while in any case."""
        self.transport.close()
        self.loop.call_later(self.crowd.limits.time_limit, self.transport.abort)


class Server(uvicorn.Server):
    """Uvicorn's, with a long line of those who wait for a connection, of whom a few are let in at a time."""

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)  # asyncio has one number for both
        for sock in sockets or ():
            sock.listen(BACKLOG)


def enough_files(limits: Limits) -> None:
    """Makes sure that file descriptors suffice for all connections that are allowed, or says how many are."""
    try:
        import resource
    except ImportError:  # no such limit
        return
    needed = limits.max_connections + ON_THE_WAY + OTHER_FILES
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft == resource.RLIM_INFINITY or soft >= needed:
        return
    if hard != resource.RLIM_INFINITY and hard < needed:
        why = f"which needs {needed} file descriptors, and this machine allows {hard}"
        advice = f"give at most {max(hard - ON_THE_WAY - OTHER_FILES, 0)}, or allow more with ulimit -n"
        raise InputError(f"--max-connections is {limits.max_connections}, {why}; {advice}")
    resource.setrlimit(resource.RLIMIT_NOFILE, (needed, hard))
