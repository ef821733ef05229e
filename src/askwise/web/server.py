"""`askwise serve`: the application under uvicorn, which is told to be impatient."""

from __future__ import annotations

import argparse
import asyncio
import gc
import logging
import os
import signal
import socket
from dataclasses import fields
from typing import Any

import h11
import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol

from askwise.errors import InputError
from askwise.web.app import create_app
from askwise.web.limits import Gate
from askwise.web.logs import Forward, Log, Metrics
from askwise.web.settings import Limits, Settings, checked_token, is_loopback, load_models

PATIENCE = 5  # seconds that requests in progress get at the end


class Impatient(H11Protocol):
    """A connection that is closed when the head of a request, or a reader, takes too long. The gate looks after bodies."""

    patience = 10.0  # seconds
    metrics: Metrics
    waiting: asyncio.TimerHandle | None = None
    stuck: asyncio.TimerHandle | None = None

    def connection_made(self, transport: Any) -> None:
        super().connection_made(transport)
        self.metrics.connections += 1
        self._wait()

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        if self.conn.their_state is h11.IDLE and self.conn.trailing_data[0]:  # the head of a request has begun
            self._wait()
        else:
            self._no_longer()

    def connection_lost(self, exc: Exception | None) -> None:
        self.metrics.connections -= 1
        self._no_longer()
        self.resume_writing()
        super().connection_lost(exc)

    def pause_writing(self) -> None:
        super().pause_writing()
        self.stuck = self.loop.call_later(self.patience, self.transport.abort)

    def resume_writing(self) -> None:
        if self.stuck is not None:
            self.stuck.cancel()
            self.stuck = None
        super().resume_writing()

    def _wait(self) -> None:
        if self.waiting is None:
            self.waiting = self.loop.call_later(self.patience, self._late)

    def _no_longer(self) -> None:
        if self.waiting is not None:
            self.waiting.cancel()
            self.waiting = None

    def _late(self) -> None:
        self.waiting = None
        if self.conn.their_state is h11.IDLE and not self.transport.is_closing():
            words = b"the request did not arrive in time\n"
            self.transport.write(b"HTTP/1.1 408 Request Timeout\r\nconnection: close\r\ncontent-type: text/plain\r\n"
                                 b"content-length: %d\r\n\r\n%s" % (len(words), words))  # fmt: skip
            self.transport.close()


def config_of(app: Gate, host: str, port: int, limits: Limits, log: Log) -> uvicorn.Config:
    """How uvicorn is to behave; its own messages go to our log."""
    for name in ("uvicorn", "uvicorn.error", "uvicorn.access", "uvicorn.asgi"):
        logger = logging.getLogger(name)
        logger.handlers, logger.propagate = ([Forward(log)] if name == "uvicorn" else []), name != "uvicorn"
        logger.setLevel(logging.INFO)
    impatient = type("Impatient", (Impatient,), {"patience": limits.time_limit, "metrics": app.metrics})
    return uvicorn.Config(
        app, host=host, port=port, http=impatient, ws="none", loop="asyncio", lifespan="off", log_config=None, access_log=False,
        proxy_headers=False, server_header=False, limit_concurrency=limits.max_connections, timeout_graceful_shutdown=PATIENCE,
        timeout_keep_alive=max(int(limits.time_limit), 1), backlog=512,
    )  # fmt: skip


def serve(given: argparse.Namespace) -> None:
    """The command: loads the models, then answers until it is told to stop."""
    token = checked_token(given.host, given.token if given.token is not None else os.environ.get("ASKWISE_TOKEN"))
    limits = Limits(**{each.name: getattr(given, each.name) for each in fields(Limits)})
    log = Log(values=given.log_values)
    models = load_models(given.models)
    settings = Settings(limits, token, is_loopback(given.host), given.log_values, given.echo)
    app = create_app(models, settings, log)
    with listening(given.host, given.port) as sock:
        port = sock.getsockname()[1]
        shown = f"[{given.host}]" if ":" in given.host else given.host
        print(f"askwise: {', '.join(models)} at http://{shown}:{port}/ (Ctrl-C stops it)", flush=True)
        for number in (
            signal.SIGINT,
            signal.SIGTERM,
        ):  # uvicorn ends in good order, then raises them again: nothing is left to do
            signal.signal(number, lambda *_: None)
        gc.collect()
        gc.freeze()  # what is there now stays; looking through it again and again would only make some answers late
        uvicorn.Server(config_of(app, given.host, port, limits, log)).run(sockets=[sock])
    log.write("stopped")


def listening(host: str, port: int) -> socket.socket:
    """A socket that clients can connect to; port 0 is any that is free."""
    if not 0 <= port <= 65535:
        raise InputError(f"cannot listen on --port {port}; it must be from 0 to 65535")
    # said to be TCP, since asyncio sends small answers at once only where it is: they would wait for 40 ms otherwise
    sock = socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    try:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        sock.bind((host, port))
        sock.listen(512)
    except OSError as error:
        sock.close()
        raise InputError(f"cannot listen on --host {host} --port {port}: {error}") from None
    return sock
