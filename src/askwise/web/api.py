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
        "tests": model.schema.n_tests,
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


MEANING = {
    401: "The token is missing or wrong.",
    404: "There is no such model.",
    408: "The request did not arrive in time.",
    413: "The request is too large.",
    415: "The body is not application/json.",
    421: "The service does not answer under this name.",
    422: "Something in it cannot be used.",
    429: "Too many requests.",
}
WRONG = (404, 408, 413, 415, 422)  # what may be wrong with a body


def _gives(model: type, words: str, *errors: int) -> dict[int | str, dict[str, Any]]:
    means = {200: words, **{status: MEANING[status] for status in (*errors, 401, 421, 429)}}
    return {status: {"model": model if status == 200 else ErrorBody, "description": text} for status, text in means.items()}


def examples_of(models: dict[str, LearnedModel]) -> tuple[dict[str, Any], Any]:
    """A case of the first model with its answer, so that what the documentation shows is real."""
    model = next(iter(models.values()))
    start = PartialCase(model, case_id="A-17")
    first = answer_of(start, next_steps([start])[0])
    test = first["test"] or model.schema.tests[0]
    fields = model.form.fields(test)
    value = {f.column: _typical(f) for f in fields} if len(fields) > 1 else _typical(fields[0])
    sent: tuple[tuple[str, str, dict[str, Any]], ...] = (
        ("start", "Nothing is known yet", {}),
        ("answered", f"The result of {test}", {"answers": {test: value}}),
        ("refused", f"{test} is not available", {"refused": [test]}),
        ("budget", "At most this much for this case", {"budget": model.expected["cost"]}),
    )
    return {name: {"summary": words, "value": {"case_id": "A-17", **more}} for name, words, more in sent}, first


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
    router, path = APIRouter(), "/api/models/{model}"
    examples, first = examples_of(service.models)
    many = {"many": {"summary": "Two cases", "value": {"cases": [examples[name]["value"] for name in ("start", "answered")]}}}
    # read by hand in the routes: FastAPI's own reading takes longer than the rest of the route
    name_schema = {"type": "string", "examples": [next(iter(service.models))]}
    parameter = {"name": "model", "in": "path", "required": True, "description": "Name of the model.", "schema": name_schema}
    batcher = StepBatcher()

    def takes(body: type, examples: dict[str, Any]) -> dict[str, Any]:
        content = {"schema": {"$ref": f"#/components/schemas/{body.__name__}"}, "examples": examples}
        return {"requestBody": {"required": True, "content": {"application/json": content}}, "parameters": [parameter]}

    alive = _gives(bodies.HealthBody, "The service answers.")
    del alive[401]

    @router.get("/health", responses=alive, tags=["service"])
    async def health() -> Response:
        """Whether the service is up. It needs no token."""
        return to_json({"status": "ok", "version": __version__, "models": len(service.models)})

    counters = _gives(bodies.HealthBody, "")
    counters[200] = {"description": "Counters.", "content": {"text/plain": {"schema": {"type": "string"}}}}

    @router.get("/metrics", responses=counters, tags=["service"], response_class=Response)
    async def metrics() -> Response:
        """Counters in Prometheus' text format."""
        return Response(service.metrics.text(), media_type="text/plain; version=0.0.4; charset=utf-8")

    @router.get("/api/models", responses=_gives(bodies.ModelsBody, "All models."), tags=["models"])
    async def models() -> Response:
        """The models of this service."""
        return to_json({"models": service.summaries})

    about = _gives(bodies.ModelCardBody, "The model.", 404)

    @router.get(path, responses=about, tags=["models"], openapi_extra={"parameters": [parameter]})
    async def one_model(request: Request) -> Response:
        """What a model asks, with costs and ranges, what it decides and what it is expected to cost."""
        return to_json(service.model_cards[service.asked(request)[0]])

    if service.settings.echo:

        @router.post("/api/echo", include_in_schema=False)
        async def echo(request: Request) -> Response:
            """What was sent: the cost of the service without its work, to measure against."""
            return to_json(bodies.read(CaseBody, await request.body()).arguments)

    def read(request: Request, model: LearnedModel, body: bytes) -> Session:
        case = bodies.read(CaseBody, body)
        service.saw(request, case.arguments)
        return case_of(model, case)

    async def received(request: Request, model: LearnedModel) -> Session:
        body = await request.body()
        if len(body) <= LARGE:
            return read(request, model, body)
        large: Session = await service.long(request, read, request, model, body)
        return large

    answer = _gives(bodies.StepBody, "A question or the decision.", *WRONG)
    answer[200]["content"] = {"application/json": {"example": first}}

    @router.post(f"{path}/next", responses=answer, tags=["cases"], openapi_extra=takes(CaseBody, examples))
    async def next_step(request: Request) -> Response:
        """The next test for a case, or the decision. Send all answers so far, each time."""
        name, model = service.asked(request)
        case = await received(request, model)
        alone = service.metrics.connections <= 1  # nobody else can have arrived
        step = next_steps([case])[0] if alone else await batcher.next(case)
        service.metrics.answer(name, "ask" if step.decision is None else "decide")
        return to_json(answer_of(case, step))

    record = _gives(bodies.TraceBody, "The record.", *WRONG)

    @router.post(f"{path}/trace", responses=record, tags=["cases"], openapi_extra=takes(CaseBody, examples))
    async def trace(request: Request) -> Response:
        """The record of a case as it stands, which can be replayed."""
        session = await received(request, service.asked(request)[1])
        session.next()
        return to_json(session.trace())

    def all_steps(request: Request, name: str, model: LearnedModel, body: bytes) -> Response:
        cases, most = bodies.read(bodies.BatchBody, body).cases, service.settings.limits.max_cases
        if len(cases) > most:
            raise InputError(f"there are {len(cases)} cases; one request may hold {most}")
        service.saw(request, [case.model_dump() if isinstance(case, ErrorBody) else case.arguments for case in cases])
        steps = batch_of(model, cases, service.turns.breathe)
        kinds = ["ask" if step["decision"] is None else "decide" for step in steps if "error" not in step]
        for kind in ("ask", "decide"):
            service.metrics.answer(name, kind, kinds.count(kind))
        return to_json({"steps": steps})

    each = _gives(bodies.StepsBody, "One step for each case.", *WRONG)

    @router.post(f"{path}/batch", responses=each, tags=["cases"], openapi_extra=takes(bodies.BatchBody, many))
    async def batch(request: Request) -> Response:
        """The next steps of many cases, which is faster than one after the other."""
        name, model = service.asked(request)
        response: Response = await service.long(request, all_steps, request, name, model, await request.body())
        return response

    return router
