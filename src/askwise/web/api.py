"""The JSON API. It keeps nothing: each request brings all answers so far, and gets the next question or the decision."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, TypeVar
from urllib.parse import quote

from fastapi import APIRouter, Request, Response

from askwise import __version__
from askwise.errors import FREE, OUTSIDE, REFUSE, UNDO, InputError, did_you_mean, reworded
from askwise.model.model import LearnedModel
from askwise.model.purchases import usage
from askwise.session.next_steps import next_steps
from askwise.session.partial_case import PartialCase
from askwise.session.session import Session
from askwise.session.step import Step
from askwise.texts import encoded
from askwise.web import bodies
from askwise.web.bodies import CaseBody, ErrorBody
from askwise.web.clients import address
from askwise.web.logs import Log, Metrics
from askwise.web.settings import ServiceSettings
from askwise.web.turns import Turns

AnyCase = TypeVar("AnyCase", bound=PartialCase)
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


@dataclass
class Service:
    """What the routes share."""

    models: dict[str, LearnedModel]
    settings: ServiceSettings
    log: Log
    metrics: Metrics
    turns: Turns = field(init=False)

    def __post_init__(self) -> None:
        self.turns = Turns(lambda: self.metrics.begun - self.turns.begun)

    async def long(self, request: Request, work: Callable[..., Any], *arguments: Any) -> Any:
        """What takes long is done in turns, beside the event loop."""
        return await self.turns.run(address(request.scope), work, *arguments)

    def model(self, name: str) -> LearnedModel:
        model = self.models.get(name)
        if model is None:
            raise Missing(f"there is no model {name[:60]!r}; {did_you_mean(name[:60], self.models)}")
        return model

    def asked(self, request: Request) -> tuple[str, LearnedModel]:
        """The model that a path names."""
        name = request.path_params["model"]
        return name, self.model(name)

    @cached_property
    def summaries(self) -> list[dict[str, Any]]:
        return [summary(name, model) for name, model in self.models.items()]

    @cached_property
    def cards(self) -> dict[str, dict[str, Any]]:
        return {name: card(name, model) for name, model in self.models.items()}

    def saw(self, request: Request, body: Any) -> None:
        """Case values, for the log, if they are asked for."""
        if self.settings.log_values:
            request.scope["askwise"] = {"values": body}


def summary(name: str, model: LearnedModel) -> dict[str, Any]:
    """A model in short."""
    costs, expected = model.schema.costs, model.expected
    return {
        "name": name,
        "tests": model.schema.n_tests,
        "classes": list(model.schema.classes),
        "unit": model.unit,
        "total_cost": costs.money(costs.total),
        "expected_cost": expected["cost"],
        "expected_accuracy": expected["accuracy"],
        "expected_cost_error": expected["cost_error"],
        "expected_accuracy_error": expected["accuracy_error"],
        "measured_on": expected["n"],
    }


def card(name: str, model: LearnedModel) -> dict[str, Any]:
    """All that a client needs to ask the questions of a model."""
    schema, used = model.schema, usage(model)
    alone = schema.costs.money(schema.costs.alone).tolist()
    return {
        "name": name,
        "classes": list(schema.classes),
        "unit": model.unit,
        "total_cost": schema.costs.money(schema.costs.total),
        "known": list(model.known),
        "tests": [
            {"test": test, "cost": cost, "columns": [field.to_dict() for field in model.form.fields(test)]}
            for test, cost in zip(schema.tests, alone, strict=True)
        ],
        "budget": str(model.budget),
        "expected": model.expected,
        "frontier": [point.shown for point in model.frontier],
        "bought": None if used is None else used.bought,
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


def case_of(kind: type[AnyCase], model: LearnedModel, body: CaseBody) -> AnyCase:
    """The case that a request brings."""
    case = kind(model, **body.arguments)
    if body.stop:
        case.stop()
    return case


def answer_of(case: PartialCase, step: Step) -> dict[str, Any]:
    return {"case_id": case.case_id, **step.to_dict()}


def batch_of(model: LearnedModel, requests: list[CaseBody | ErrorBody], breathe: Callable[[], None]) -> list[dict[str, Any]]:
    """The next steps of many cases, computed together. A case that cannot be used gets its sentence; the others go on."""
    answers: list[dict[str, Any]] = []
    for first in range(0, len(requests), AT_ONCE):
        cases: list[PartialCase | ErrorBody] = []
        for body in requests[first : first + AT_ONCE]:
            try:
                cases.append(body if isinstance(body, ErrorBody) else case_of(PartialCase, model, body))
            except InputError as error:
                cases.append(ErrorBody(error=reworded(error, WORDS)))
        steps = iter(next_steps([case for case in cases if isinstance(case, PartialCase)]))
        answers += [case.model_dump() if isinstance(case, ErrorBody) else answer_of(case, next(steps)) for case in cases]
        breathe()
    return answers


def to_json(data: Any, status: int = 200, **headers: str) -> Response:
    text = json.dumps(data, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    return Response(encoded(text), status, headers, media_type="application/json")


def _takes(model: type, examples: dict[str, Any]) -> dict[str, Any]:
    """The OpenAPI words for a body that is read by hand."""
    ref = {"$ref": f"#/components/schemas/{model.__name__}"}
    return {"requestBody": {"required": True, "content": {"application/json": {"schema": ref, "examples": examples}}}}


def _gives(model: type, words: str, *errors: int, example: Any = None) -> dict[int | str, dict[str, Any]]:
    meaning = {
        401: "The token is missing or wrong.",
        404: "There is no such model.",
        408: "The request did not arrive in time.",
        413: "The request is too large.",
        415: "The body is not application/json.",
        422: "Something in it cannot be used.",
        429: "Too many requests.",
        421: "The service does not answer under this name.",
    }
    body = {} if example is None else {"content": {"application/json": {"example": example}}}
    return {
        200: {"model": model, "description": words, **body},
        **{n: {"model": ErrorBody, "description": meaning[n]} for n in (*errors, 401, 421, 429)},
    }


def examples_of(models: dict[str, LearnedModel]) -> tuple[dict[str, Any], Any]:
    """A case of the first model with its answer, so that what the documentation shows is real."""
    model = next(iter(models.values()))
    case: dict[str, Any] = {"case_id": "A-17"}
    start = PartialCase(model, case_id="A-17")
    first = answer_of(start, next_steps([start])[0])
    examples = {"start": {"summary": "Nothing is known yet", "value": case}}
    test = first["test"] or model.schema.tests[0]
    fields = model.form.fields(test)
    value = {f.column: _typical(f) for f in fields}
    answered = {**case, "answers": {test: value if len(fields) > 1 else value[fields[0].column]}}
    examples["answered"] = {"summary": f"The result of {test}", "value": answered}
    examples["refused"] = {"summary": f"{test} is not available", "value": {**case, "refused": [test]}}
    examples["budget"] = {"summary": "At most this much for this case", "value": {**case, "budget": model.expected["cost"]}}
    return examples, first


def _typical(field: Any) -> Any:
    if field.categories:
        return field.categories[0]
    if field.kind == "boolean":
        return True
    if field.kind == "time" or field.low is None:
        return 1.0 if field.low is None else field.low
    return round((field.low + field.high) / 2, 0 if field.whole else 2)


def routes(service: Service) -> APIRouter:
    """All routes under /api, and those for machines that watch."""
    router = APIRouter()
    examples, first = examples_of(service.models)
    one, path = next(iter(service.models)), "/api/models/{model}"
    wrong = (404, 408, 413, 415, 422)
    # read by hand in the routes: FastAPI's own reading takes longer than the rest of the route
    named = {
        "parameters": [
            {
                "name": "model",
                "in": "path",
                "required": True,
                "description": "Name of the model.",
                "schema": {"type": "string", "examples": [one]},
            }
        ]
    }
    batcher = StepBatcher()

    alive = {status: words for status, words in _gives(bodies.HealthBody, "The service answers.").items() if status != 401}

    @router.get("/health", responses=alive, tags=["service"])
    async def health() -> Response:
        """Whether the service is up. It needs no token."""
        return to_json({"status": "ok", "version": __version__, "models": len(service.models)})

    @router.get(
        "/metrics",
        tags=["service"],
        response_class=Response,
        responses={
            200: {"description": "Counters.", "content": {"text/plain": {"schema": {"type": "string"}}}},
            **{k: v for k, v in _gives(bodies.HealthBody, "").items() if k != 200},
        },
    )
    async def metrics() -> Response:
        """Counters in Prometheus' text format."""
        return Response(service.metrics.text(), media_type="text/plain; version=0.0.4; charset=utf-8")

    @router.get("/api/models", responses=_gives(bodies.ModelsBody, "All models."), tags=["models"])
    async def models() -> Response:
        """The models of this service."""
        return to_json({"models": service.summaries})

    @router.get(path, responses=_gives(bodies.ModelCardBody, "The model.", 404), tags=["models"], openapi_extra=named)
    async def one_model(request: Request) -> Response:
        """What a model asks, with costs and ranges, what it decides and what it is expected to cost."""
        name, _ = service.asked(request)
        return to_json(service.cards[name])

    if service.settings.echo:

        @router.post("/api/echo", tags=["service"], responses=_gives(bodies.TraceBody, "What was sent."), include_in_schema=False)
        async def echo(request: Request) -> Response:
            """What was sent: the cost of the service without its work, to measure against."""
            return to_json(bodies.read_case(await request.body()).arguments)

    answer = _gives(bodies.StepBody, "A question or the decision.", *wrong, example=first)

    def read(kind: type[AnyCase], request: Request, model: LearnedModel, body: bytes) -> AnyCase:
        case = bodies.read_case(body)
        service.saw(request, case.arguments)
        return case_of(kind, model, case)

    async def received(kind: type[AnyCase], request: Request, model: LearnedModel) -> AnyCase:
        body = await request.body()
        if len(body) <= LARGE:
            return read(kind, request, model, body)
        large: AnyCase = await service.long(request, read, kind, request, model, body)
        return large

    @router.post(f"{path}/next", tags=["cases"], responses=answer, openapi_extra={**_takes(CaseBody, examples), **named})
    async def next_step(request: Request) -> Response:
        """The next test for a case, or the decision. Send all answers so far, each time."""
        name, model = service.asked(request)
        case = await received(PartialCase, request, model)
        alone = service.metrics.connections <= 1  # nobody else can have arrived
        step = next_steps([case])[0] if alone else await batcher.next(case)
        service.metrics.answer(name, "ask" if step.decision is None else "decide")
        return to_json(answer_of(case, step))

    @router.post(
        f"{path}/trace",
        tags=["cases"],
        responses=_gives(bodies.TraceBody, "The record.", *wrong),
        openapi_extra={**_takes(CaseBody, examples), **named},
    )
    async def trace(request: Request) -> Response:
        """The record of a case as it stands, which can be replayed."""
        _, model = service.asked(request)
        session = await received(Session, request, model)
        session.next()
        return to_json(session.trace())

    many = {"many": {"summary": "Two cases", "value": {"cases": [examples["start"]["value"], examples["answered"]["value"]]}}}

    def all_steps(request: Request, name: str, model: LearnedModel, body: bytes) -> Response:
        batch = bodies.read_batch(body)
        most = service.settings.limits.max_cases
        if len(batch.cases) > most:
            raise InputError(f"there are {len(batch.cases)} cases; one request may hold {most}")
        service.saw(request, [case.model_dump() if isinstance(case, ErrorBody) else case.arguments for case in batch.cases])
        steps = batch_of(model, batch.cases, service.turns.breathe)
        for kind in ("ask", "decide"):
            n = sum((step["decision"] is None) == (kind == "ask") for step in steps if "error" not in step)
            service.metrics.answer(name, kind, n)
        return to_json({"steps": steps})

    @router.post(
        f"{path}/batch",
        tags=["cases"],
        responses=_gives(bodies.StepsBody, "One step for each case.", *wrong),
        openapi_extra={**_takes(bodies.BatchBody, many), **named},
    )
    async def batch(request: Request) -> Response:
        """The next steps of many cases, which is faster than one after the other."""
        name, model = service.asked(request)
        response: Response = await service.long(request, all_steps, request, name, model, await request.body())
        return response

    return router


def url(name: str) -> str:
    """A name as part of a path."""
    return quote(name, safe="")
