"""`askwise serve`: the application under uvicorn, which is told to be impatient."""

from __future__ import annotations

import argparse
import gc
import logging
import os
import signal
import socket
import sys
import threading
from dataclasses import fields

import uvicorn

from askwise.errors import InputError
from askwise.web.app import create_app
from askwise.web.connections import AT_ONCE, BACKLOG, Connection, Crowd, Server, enough_files
from askwise.web.logs import Forward, Log
from askwise.web.request_guard import RequestGuard
from askwise.web.settings import Limits, ServiceSettings, checked_proxies, checked_token, is_loopback, load_models

PATIENCE = 5  # seconds that requests in progress get at the end
HEAD = 16 << 10  # bytes of the head of a request
MOST_WORKERS = 256


def config_of(app: RequestGuard, host: str, port: int, settings: ServiceSettings, log: Log, workers: int = 1) -> uvicorn.Config:
    """How uvicorn is to behave. workers: of whom this is one."""
    crowd = Crowd(settings.limits.part(workers), settings.proxies, app.metrics, log)
    return uvicorn.Config(
        app,
        host=host,
        port=port,
        http=type("Connection", (Connection,), {"crowd": crowd}),
        ws="none",
        loop="asyncio",
        lifespan="off",
        log_config=None,
        access_log=False,
        proxy_headers=False,
        server_header=False,
        timeout_graceful_shutdown=PATIENCE,
        timeout_keep_alive=max(int(settings.limits.time_limit), 1),
        backlog=AT_ONCE if workers == 1 else 1,  # one of several leaves the next one to the others
        h11_max_incomplete_event_size=HEAD,
    )


def only_json(log: Log) -> None:
    """Whatever anyone has to say goes to our log: uvicorn, asyncio, warnings, threads that fail."""
    root = logging.getLogger()
    root.handlers, root.level = [Forward(log)], logging.INFO
    for name in ("uvicorn", "uvicorn.error", "uvicorn.access", "uvicorn.asgi", "asyncio"):
        logger = logging.getLogger(name)
        logger.handlers, logger.propagate = [], True
    logging.captureWarnings(True)
    threading.excepthook = lambda failed: log.failure(failed.exc_value or RuntimeError("a thread failed"), where="thread")
    sys.excepthook = lambda _, error, __: log.failure(error, where="main")


def serve(options: argparse.Namespace) -> None:
    """The command: loads the models, then answers until it is told to stop."""
    proxies = checked_proxies(options.trusted_proxy)
    token = checked_token(options.host, options.token if options.token is not None else os.environ.get("ASKWISE_TOKEN"), proxies)
    limits = Limits(**{each.name: getattr(options, each.name) for each in fields(Limits)})
    check_workers(options.workers, limits)
    enough_files(limits)
    log = Log(values=options.log_values)
    models = load_models(options.models)
    local = is_loopback(options.host) and not proxies  # a proxy hands on the names that others know
    settings = ServiceSettings(limits, token, local, options.log_values, options.echo, proxies)
    app = create_app(models, settings, log)
    with listening(options.host, options.port) as sock:
        port = sock.getsockname()[1]
        shown = f"[{options.host}]" if ":" in options.host else options.host
        print(f"askwise: {', '.join(models)} at http://{shown}:{port}/ (Ctrl-C stops it)", flush=True)
        gc.collect()
        gc.freeze()  # what is there now stays; looking through it again and again would only make some answers late
        only_json(log)
        if options.workers == 1:
            answer(config_of(app, options.host, port, settings, log), sock)
        else:
            several(options.workers, app, options.host, settings, log, sock)
    log.write("stopped")


def check_workers(n: int, limits: Limits) -> None:
    """Whether there can be so many."""
    if not 1 <= n <= MOST_WORKERS:
        raise InputError(f"--workers is {n}; it must be from 1 to {MOST_WORKERS}")
    if n > 1 and not hasattr(os, "fork"):
        raise InputError(f"--workers is {n}, and this system cannot copy processes; leave it out")
    for option, most in (
        ("--max-connections", limits.max_connections),
        ("--max-connections-per-client", limits.max_connections_per_client),
    ):
        if most < n:
            raise InputError(f"{option} is {most}, which {n} workers share; it must be {n} or more")


def answer(config: uvicorn.Config, sock: socket.socket) -> None:
    """Until the process is told to stop."""
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: None)  # uvicorn ends in good order, then raises them again: nothing is left to do
    Server(config).run(sockets=[sock])


def several(workers: int, app: RequestGuard, host: str, settings: ServiceSettings, log: Log, sock: socket.socket) -> None:
    """The same by several processes, which share the socket and all limits."""
    from askwise.web.workers import Published, Shared, SharedRate, supervise

    with Shared() as shared:
        app.rate = SharedRate(settings.limits.rate, shared)

        def work(worker: int) -> None:
            config = config_of(app, host, sock.getsockname()[1], settings, log, workers)
            config.callback_notify, config.timeout_notify = Published(shared, worker, app.metrics).tell, 0
            answer(config, sock)

        supervise(workers, work, log, PATIENCE)


def listening(host: str, port: int) -> socket.socket:
    """A socket that clients can connect to; port 0 is any that is free."""
    if not 0 <= port <= 65535:
        raise InputError(f"cannot listen on --port {port}; it must be from 0 to 65535")
    # said to be TCP, since asyncio sends small answers at once only where it is: they would wait for 40 ms otherwise
    sock = socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    try:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        sock.bind((host, port))
        sock.listen(BACKLOG)
    except OSError as error:
        sock.close()
        raise InputError(f"cannot listen on --host {host} --port {port}: {error}") from None
    return sock
