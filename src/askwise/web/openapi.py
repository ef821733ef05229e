"""What OpenAPI says of the routes for programs: words, examples from a real model, and the whole schema."""

from __future__ import annotations

from typing import Any

from fastapi import FastAPI, Response
from fastapi.openapi.utils import get_openapi
from pydantic.json_schema import models_json_schema

from askwise.model.model import LearnedModel
from askwise.session.next_steps import next_steps
from askwise.session.partial_case import PartialCase
from askwise.web import bodies
from askwise.web.api import answer_of
from askwise.web.bodies import ErrorBody
from askwise.web.settings import ServiceSettings

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


def _examples_of(models: dict[str, LearnedModel]) -> tuple[dict[str, Any], Any]:
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


def words_of(models: dict[str, LearnedModel]) -> dict[str, dict[str, Any]]:
    """What is said of each route, by the name of the method of `api.Routes` that answers it."""
    examples, first = _examples_of(models)
    many = {"many": {"summary": "Two cases", "value": {"cases": [examples[name]["value"] for name in ("start", "answered")]}}}
    # bodies and names are read by hand in the routes: FastAPI's own reading takes longer than the rest of the route
    name_schema = {"type": "string", "examples": [next(iter(models))]}
    parameter = {"name": "model", "in": "path", "required": True, "description": "Name of the model.", "schema": name_schema}

    def takes(body: type, examples: dict[str, Any]) -> dict[str, Any]:
        content = {"schema": {"$ref": f"#/components/schemas/{body.__name__}"}, "examples": examples}
        return {"requestBody": {"required": True, "content": {"application/json": content}}, "parameters": [parameter]}

    alive, counters = _gives(bodies.HealthBody, "The service answers."), _gives(bodies.HealthBody, "")
    del alive[401]
    counters[200] = {"description": "Counters.", "content": {"text/plain": {"schema": {"type": "string"}}}}
    answer = _gives(bodies.StepBody, "A question or the decision.", *WRONG)
    answer[200]["content"] = {"application/json": {"example": first}}
    record, each = _gives(bodies.TraceBody, "The record.", *WRONG), _gives(bodies.StepsBody, "One step for each case.", *WRONG)
    about = _gives(bodies.ModelCardBody, "The model.", 404)
    return {
        "health": {"responses": alive, "tags": ["service"]},
        "metrics": {"responses": counters, "tags": ["service"], "response_class": Response},
        "models": {"responses": _gives(bodies.ModelsBody, "All models."), "tags": ["models"]},
        "one_model": {"responses": about, "tags": ["models"], "openapi_extra": {"parameters": [parameter]}},
        "next_step": {"responses": answer, "tags": ["cases"], "openapi_extra": takes(bodies.CaseBody, examples)},
        "trace": {"responses": record, "tags": ["cases"], "openapi_extra": takes(bodies.CaseBody, examples)},
        "batch": {"responses": each, "tags": ["cases"], "openapi_extra": takes(bodies.BatchBody, many)},
    }


def schema_of(app: FastAPI, settings: ServiceSettings) -> dict[str, Any]:
    """All that an application answers to programs."""
    schema = get_openapi(title=app.title, version=app.version, description=app.description, routes=app.routes)
    _, extra = models_json_schema([(bodies.BatchBody, "validation")], ref_template="#/components/schemas/{model}")
    parts = schema.setdefault("components", {})
    parts["schemas"] = {k: v for k, v in {**parts.get("schemas", {}), **extra["$defs"]}.items() if "Validation" not in k}
    for operations in schema["paths"].values():
        for operation in operations.values():
            if operation["responses"].get("422", {}).get("description") == "Validation Error":
                del operation["responses"]["422"]  # FastAPI's own, which never comes
    if settings.token is not None:
        parts["securitySchemes"] = {"token": {"type": "http", "scheme": "bearer"}}
        schema["security"] = [{"token": []}]
    return schema
