"""The JSON API. It keeps nothing: each request brings all answers so far, and gets the next question or the decision."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any

from fastapi import APIRouter, Request, Response

from askwise import __version__
from askwise.errors import FREE, OUTSIDE, REFUSE, UNDO, InputError, did_you_mean, reworded
from askwise.model.model import LearnedModel
from askwise.model.purchases import usage
from askwise.model.recalls import for_machines
from askwise.reports.model_report import decision_costs
from askwise.session.next_steps import next_steps
from askwise.session.partial_case import PartialCase
from askwise.session.session import Session
from askwise.session.step import Step
from askwise.texts import encoded
from askwise.web import bodies
from askwise.web.bodies import CaseBody, ErrorBody
from askwise.web.clients import address
from askwise.web.logs import Metrics
from askwise.web.settings import ServiceSettings
from askwise.web.turns import Turns

LARGE = 16 << 10  # bytes of a case; reading and computing more than this is long work
AT_ONCE = 16  # cases of a batch between two rests

WORDS = {
    OUTSIDE: "send outside: true if it is right",
    FREE: "send it in known if it cost nothing",
    REFUSE: "give it, or name the test in refused if it is not available",
    UNDO: "name it in one field only",
}


class Missing(InputError):
    """There is nothing of that name."""


class Service:
    """What the routes share."""

    def __init__(self, models: dict[str, LearnedModel], settings: ServiceSettings, metrics: Metrics) -> None:
        self.models, self.settings, self.metrics = models, settings, metrics
        self.turns = Turns(lambda: metrics.received - self.turns.received)
        self.summaries = [summary(name, model) for name, model in models.items()]
        self.model_cards = {name: model_card(name, model) for name, model in models.items()}

    async def long(self, request: Request, work: Callable[..., Any], *arguments: Any) -> Any:
        """What takes long is done in turns, beside the event loop."""
        return await self.turns.run(address(request.scope), work, *arguments)

    def asked(self, request: Request) -> tuple[str, LearnedModel]:
        """The model that a path names."""
        (name,) = request.path_params.values()
        if name not in self.models:
            raise Missing(f"there is no model {name[:60]!r}; {did_you_mean(name[:60], self.models)}")
        return name, self.models[name]

    def saw(self, request: Request, body: Any) -> None:
        """Case values, for the log, if they are asked for."""
        if self.settings.log_values:
            request.scope["askwise"] = {"values": body}


def summary(name: str, model: LearnedModel) -> dict[str, Any]:
    """A model in short."""
    costs, expected = model.schema.costs, model.expected
    return {
        "name": name,
        "tests": len(model.schema.offered),
        "classes": list(model.schema.classes),
        "unit": model.unit,
        "total_cost": costs.money(costs.total),
        **{f"expected_{name}": expected[name] for name in ("cost", "accuracy", "cost_error", "accuracy_error")},
        "measured_on": expected["n"],
    }


def model_card(name: str, model: LearnedModel) -> dict[str, Any]:
    """All that a client needs to ask the questions of a model."""
    schema, used = model.schema, usage(model)
    alone = schema.costs.money(schema.costs.alone).tolist()
    return {
        "name": name,
        "classes": list(schema.classes),
        "other_decisions": decision_costs(model),
        "unit": model.unit,
        "total_cost": schema.costs.money(schema.costs.total),
        "known": list(model.known),
        "tests": [
            {"test": test, "cost": cost, "columns": [field.to_dict() for field in model.form.fields(test)]}
            for test, cost in zip(schema.offered, alone, strict=False)  # the last may tell what is missing
        ],
        "objective": model.objective,
        "budget": str(model.budget),
        "drawn": model.blend.drawn,
        "expected": model.expected,
        "frontier": model.frontier_figures,
        "bought": None if used is None else used.bought,
        **for_machines(model),
    }


class StepBatcher:
    """Computes the next steps of all requests that have arrived by now at once: numbers of many cases take hardly longer than
    those of one."""

    def __init__(self) -> None:
        self.waiting: list[tuple[PartialCase, asyncio.Future[Step | None]]] = []

    async def next(self, case: PartialCase) -> Step:
        loop = asyncio.get_running_loop()
        done: asyncio.Future[Step | None] = loop.create_future()
        self.waiting.append((case, done))
        if len(self.waiting) == 1:
            loop.call_soon(self._compute)  # after every request that is ready now
        return await done or next_steps([case])[0]

    def _compute(self) -> None:
        waiting, self.waiting = self.waiting, []
        steps: Sequence[Step | None] = [None] * len(waiting)
        with suppress(Exception):  # then each is computed alone, and whoever caused it gets it
            steps = next_steps([case for case, _ in waiting])
        for (_, done), step in zip(waiting, steps, strict=True):
            if not done.done():  # its client may have gone
                done.set_result(step)


def case_of(model: LearnedModel, body: CaseBody) -> Session:
    """The case that a request brings."""
    case = Session(model, **body.arguments)
    if body.stop:
        case.repeat({"do": "stop"})  # without computing what comes next
    return case


def answer_of(case: PartialCase, step: Step) -> dict[str, Any]:
    return {"case_id": case.case_id, **step.to_dict()}


def batch_of(model: LearnedModel, requests: list[CaseBody | ErrorBody], breathe: Callable[[], None]) -> list[dict[str, Any]]:
    """The next steps of many cases, computed together. A case that cannot be used gets its sentence; the others go on."""
    answers: list[dict[str, Any]] = []
    for first in range(0, len(requests), AT_ONCE):
        cases: list[Session | ErrorBody] = []
        for body in requests[first : first + AT_ONCE]:
            try:
                cases.append(body if isinstance(body, ErrorBody) else case_of(model, body))
            except InputError as error:
                cases.append(ErrorBody(error=reworded(error, WORDS)))
        steps = iter(next_steps([case for case in cases if isinstance(case, Session)]))
        answers += [case.model_dump() if isinstance(case, ErrorBody) else answer_of(case, next(steps)) for case in cases]
        breathe()
    return answers


def to_json(data: Any, status: int = 200, **headers: str) -> Response:
    text = json.dumps(data, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    return Response(encoded(text), status, headers, media_type="application/json")


class Routes:
    """Answers each route for programs."""

    def __init__(self, service: Service) -> None:
        self.service, self.batcher = service, StepBatcher()

    async def health(self, request: Request) -> Response:
        """Whether the service is up. It needs no token."""
        return to_json({"status": "ok", "version": __version__, "models": len(self.service.models)})

    async def metrics(self, request: Request) -> Response:
        """Counters in Prometheus' text format."""
        return Response(self.service.metrics.text(), media_type="text/plain; version=0.0.4; charset=utf-8")

    async def models(self, request: Request) -> Response:
        """The models of this service."""
        return to_json({"models": self.service.summaries})

    async def one_model(self, request: Request) -> Response:
        """What a model asks, with costs and ranges, what it decides and what it is expected to cost."""
        return to_json(self.service.model_cards[self.service.asked(request)[0]])

    async def next_step(self, request: Request) -> Response:
        """The next test for a case, or the decision. Send all answers so far, each time."""
        name, model = self.service.asked(request)
        case = await self._received(request, model)
        alone = self.service.metrics.connections <= 1  # nobody else can have arrived
        step = next_steps([case])[0] if alone else await self.batcher.next(case)
        self.service.metrics.answer(name, "ask" if step.decision is None else "decide")
        return to_json(answer_of(case, step))

    async def trace(self, request: Request) -> Response:
        """The record of a case as it stands, which can be replayed."""
        session = await self._received(request, self.service.asked(request)[1])
        session.next()
        return to_json(session.trace())

    async def batch(self, request: Request) -> Response:
        """The next steps of many cases, which is faster than one after the other."""
        name, model = self.service.asked(request)
        response: Response = await self.service.long(request, self._all_steps, request, name, model, await request.body())
        return response

    async def echo(self, request: Request) -> Response:
        """What was sent: the cost of the service without its work, to measure against."""
        return to_json(bodies.read(CaseBody, await request.body()).arguments)

    async def _received(self, request: Request, model: LearnedModel) -> Session:
        body = await request.body()
        if len(body) <= LARGE:
            return self._read(request, model, body)
        large: Session = await self.service.long(request, self._read, request, model, body)
        return large

    def _read(self, request: Request, model: LearnedModel, body: bytes) -> Session:
        case = bodies.read(CaseBody, body)
        self.service.saw(request, case.arguments)
        return case_of(model, case)

    def _all_steps(self, request: Request, name: str, model: LearnedModel, body: bytes) -> Response:
        service, cases = self.service, bodies.read(bodies.BatchBody, body).cases
        most = service.settings.limits.max_cases
        if len(cases) > most:
            raise InputError(f"there are {len(cases)} cases; one request may hold {most}")
        service.saw(request, [case.model_dump() if isinstance(case, ErrorBody) else case.arguments for case in cases])
        steps = batch_of(model, cases, service.turns.breathe)
        kinds = ["ask" if step["decision"] is None else "decide" for step in steps if "error" not in step]
        for kind in ("ask", "decide"):
            service.metrics.answer(name, kind, kinds.count(kind))
        return to_json({"steps": steps})


def routes(service: Service, words: dict[str, dict[str, Any]]) -> APIRouter:
    """All routes under /api, and those for machines that watch. words: what OpenAPI says of each."""
    router, path, api = APIRouter(), "/api/models/{model}", Routes(service)
    gets = {"/health": api.health, "/metrics": api.metrics, "/api/models": api.models, path: api.one_model}
    posts = {f"{path}/next": api.next_step, f"{path}/trace": api.trace, f"{path}/batch": api.batch}
    for method, handlers in (("GET", gets), ("POST", posts)):
        for where, handler in handlers.items():
            router.add_api_route(where, handler, methods=[method], **words[handler.__name__])
    if service.settings.echo:
        router.add_api_route("/api/echo", api.echo, methods=["POST"], include_in_schema=False)
    return router
