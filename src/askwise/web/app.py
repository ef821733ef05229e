"""The application: routes behind the guard, errors as one sentence, and a schema that names everything."""

from __future__ import annotations

from fastapi import FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException

from askwise import __version__
from askwise.errors import AskwiseError, InputError, reworded
from askwise.model.model import LearnedModel
from askwise.web import api, openapi, page
from askwise.web.logs import Log, Metrics
from askwise.web.request_guard import RequestGuard, is_for_programs
from askwise.web.settings import ServiceSettings

WORDS = "Which test to buy next for a case, and when to stop and decide. Send all answers so far, get the next question."


def create_app(models: dict[str, LearnedModel], settings: ServiceSettings | None = None, log: Log | None = None) -> RequestGuard:
    """The whole service as an ASGI application."""
    if not models:
        raise InputError("there is no model to serve; name one or more files")
    settings = settings or ServiceSettings(local=False)
    log = log or Log(values=settings.log_values)
    service = api.Service(models, settings, Metrics())
    app = FastAPI(title="askwise", version=__version__, description=WORDS, docs_url=None, redoc_url=None, openapi_url=None)
    app.include_router(api.routes(service, openapi.words_of(models)))
    schema = openapi.schema_of(app, settings)
    app.include_router(page.routes(service, schema), include_in_schema=False)
    app.openapi = lambda: schema  # type: ignore[method-assign]
    text = api.to_json(schema).body

    @app.get("/openapi.json", include_in_schema=False)
    async def described() -> Response:
        return Response(text, media_type="application/json")

    async def wrong(request: Request, error: Exception) -> Response:
        return _explained(request, 404 if isinstance(error, api.Missing) else 422, str(error))

    async def refused(request: Request, error: Exception) -> Response:
        assert isinstance(error, HTTPException)
        words = {404: "there is nothing under this address; see /docs", 405: f"this address does not take {request.method[:20]}"}
        response = _explained(request, error.status_code, words.get(error.status_code, str(error.detail)))
        response.headers.update(error.headers or {})
        return response

    async def invalid(request: Request, error: Exception) -> Response:
        return _explained(request, 422, "the address holds something that cannot be read")

    app.add_exception_handler(AskwiseError, wrong)
    app.add_exception_handler(HTTPException, refused)
    app.add_exception_handler(RequestValidationError, invalid)
    return RequestGuard(app, settings, log, service.metrics)


def _explained(request: Request, status: int, words: str) -> Response:
    if is_for_programs(request.url.path):
        return api.to_json({"error": reworded(words, api.WORDS)}, status)
    return page.error(status, words)
