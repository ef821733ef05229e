"""The page: pick a model, fill in what is known, answer question after question, keep the record.

Rendered here, so that it works without scripts; a case travels in the page's forms, so that nothing is kept between two requests.
"""

from __future__ import annotations

import hashlib
import hmac
import json
from collections.abc import Callable
from functools import lru_cache, partial
from importlib import resources
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, quote

import jinja2
from fastapi import APIRouter, Request, Response

from askwise import __version__
from askwise.errors import InputError
from askwise.model.model import LearnedModel
from askwise.model.recalls import ASKED
from askwise.reports.pages import style
from askwise.session.session import Session
from askwise.texts import encoded
from askwise.web import view
from askwise.web.api import Missing, Service
from askwise.web.clients import digits
from askwise.web.recall_view import recall_view
from askwise.web.request_guard import COOKIE, cookie_for

FIELDS = 4000  # of one form
KINDS = {".css": "text/css; charset=utf-8", ".js": "text/javascript; charset=utf-8", ".svg": "image/svg+xml"}


@lru_cache(maxsize=1)
def _static() -> dict[str, bytes]:
    folder = resources.files("askwise.web") / "static"
    files = {file.name: file.read_bytes() for file in folder.iterdir() if Path(file.name).suffix in KINDS}
    return {**files, "askwise.css": style().encode()}


@lru_cache(maxsize=1)
def _templates() -> jinja2.Environment:
    templates = jinja2.Environment(
        loader=jinja2.PackageLoader("askwise.web", "templates"),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    changed = hashlib.sha256(b"".join(v for _, v in sorted(_static().items()))).hexdigest()[:12]
    templates.globals |= {"version": __version__, "static": lambda name: f"/static/{name}?{changed}"}
    templates.filters |= {"money": view.money, "percent": view.percent, "shown": view.shown, "grouped": "{:,}".format}
    templates.filters |= {"url": partial(quote, safe="")}
    return templates


def render(template: str, status: int = 200, **facts: Any) -> Response:
    context = {"title": "", "model": None, "tab": "", "several": True, **facts}
    text = _templates().get_template(template).render(context)
    return Response(encoded(text), status, media_type="text/html; charset=utf-8")


def error(status: int, words: str) -> Response:
    return render("error.html", status, title="Not possible", words=view.for_people(words), status_code=status)


def form_fields(body: bytes) -> dict[str, str]:
    """The fields of a form; of two with one name the last."""
    strict: dict[str, Any] = {"strict_parsing": bool(body), "max_num_fields": FIELDS, "errors": "strict"}
    try:
        return dict(parse_qsl(body.decode("ascii"), keep_blank_values=True, **strict))
    except ValueError:
        raise InputError("the form cannot be read; send it again") from None


def value_of(model: LearnedModel, test: str, fields: dict[str, str], prefix: str) -> Any:
    """The value of a test from the fields of a form: text, or one text for each column; None if all are empty."""
    columns = [field.column for field in model.form.fields(test)]
    texts = [fields.get(f"{prefix}.{i}", "").strip() for i in range(len(columns))]
    if not any(texts):
        return None
    return texts[0] if len(columns) == 1 else dict(zip(columns, texts, strict=True))


def begin(model: LearnedModel, fields: dict[str, str]) -> Session:
    """A case from the form that starts it."""
    values = {test: value_of(model, test, fields, f"known.{i}") for i, test in enumerate(model.schema.offered)}
    known = {test: value for test, value in values.items() if value is not None}
    case_id, budget = (fields.get(name, "").strip() or None for name in ("case_id", "budget"))
    lacks = [test for i, test in enumerate(model.schema.offered) if f"missing.{i}" in fields]
    outside = "outside" in fields
    return Session(model, known, case_id=case_id and case_id[:200], budget=budget, refused=lacks, outside=outside)


def act(session: Session, fields: dict[str, str]) -> str | None:
    """Does what a button says. Returns the test to fill in, if it is another one than is asked."""
    test, do = fields.get("test", ""), fields.get("do", "tell")
    if do == "tell":
        value = value_of(session.model, test, fields, "value")
        session.tell(test, "" if value is None else value, paid="free" not in fields, outside="outside" in fields)
    elif do == "refuse":
        session.refuse(test)
    elif do == "undo":
        session.undo()
    elif do == "stop":
        session.stop()
    elif do == "choose":
        session.model.form.index(fields.get("other", ""))
        return fields["other"]
    elif do != "show":
        raise InputError("the form does not say what to do; use one of its buttons")
    return None


class Pages:
    """Makes each page, from a request and its body. That is long work."""

    def __init__(self, service: Service, schema: dict[str, Any]) -> None:
        self.service, self.schema, self.several = service, schema, len(service.models) > 1
        self.by_name = {each["name"]: each for each in service.summaries}

    def home(self, request: Request, body: bytes) -> Response:
        return render("home.html", title="Models", models=self.service.summaries, several=self.several)

    def start(self, request: Request, body: bytes) -> Response:
        return self._start_page(*self.service.asked(request), {})

    def started(self, request: Request, body: bytes) -> Response:
        (name, model), fields = self.service.asked(request), form_fields(body)
        self.service.saw(request, fields)
        try:
            return self._case_page(name, begin(model, fields))
        except InputError as wrong:
            return self._start_page(name, model, fields, view.for_people(str(wrong)))

    def answer(self, request: Request, body: bytes) -> Response:
        (name, model), fields = self.service.asked(request), form_fields(body)
        self.service.saw(request, fields)
        session = view.revived(model, fields.get("state", ""))
        try:
            return self._case_page(name, session, act(session, fields))
        except InputError as wrong:
            other, asks = fields.get("test", ""), session.next().test
            chosen = other if other != asks and other in model.form.tests and fields.get("do", "tell") == "tell" else None
            return self._case_page(name, session, chosen, error=view.for_people(str(wrong)), filled_in=fields, status=422)

    def record(self, request: Request, body: bytes) -> Response:
        state = form_fields(body).get("state", "")
        session = view.revived(self.service.asked(request)[1], state, self.service.turns.breathe)
        safe = "".join(c if c.isascii() and (c.isalnum() or c in "-_") else "_" for c in session.case_id)[:60] or "case"
        text = encoded(json.dumps(session.trace(), indent=1, ensure_ascii=False))
        return Response(text, 200, {"content-disposition": f'attachment; filename="{safe}.json"'}, "application/json")

    def about(self, request: Request, body: bytes) -> Response:
        (name, model), at = self.service.asked(request), request.query_params.get("at", "")
        position = digits(at)
        if at and (position is None or position > view.STEPS or len(at) > 3):
            raise Missing(f"the slider has no position {at[:20]!r}; it goes from 0 to {view.STEPS}")
        facts = {**view.model_view(model, position), "recalls": recall_view(model, *_recall_asked(request, model))}
        return render("model.html", title=f"The model: {name}", model=name, tab="model", several=self.several, **facts)

    def docs(self, request: Request, body: bytes) -> Response:
        token = self.service.settings.token is not None
        return render("docs.html", title="API", tab="docs", several=self.several, schema=self.schema, token=token)

    def login(self, request: Request, body: bytes) -> Response:
        return render("login.html", title="Log in", error="")

    def logged_in(self, request: Request, body: bytes) -> Response:
        token, sent = self.service.settings.token, form_fields(body).get("token", "")
        if token is None or not hmac.compare_digest(sent.strip().encode(), token.encode()):
            return render("login.html", 403, title="Log in", error="This is not the service's token.")
        response = Response(status_code=303, headers={"location": "/"})
        response.set_cookie(COOKIE, cookie_for(token), httponly=True, samesite="strict", secure=request.url.scheme == "https")
        return response

    def _case_page(self, name: str, session: Session, chosen: str | None = None, **more: Any) -> Response:
        facts = view.case_view(session, chosen)
        test = facts["test"]
        title = f"{test}?" if test else f"Decision: {facts['step'].decision}"
        self.service.metrics.answer(name, "ask" if test else "decide")
        return render("ask.html" if test else "done.html", **{**self._context(name, title), **facts, **more})

    def _start_page(self, name: str, model: LearnedModel, filled_in: dict[str, str], words: str = "") -> Response:
        tests = [{"test": test, "n": i, "fields": view.inputs(model, test)} for i, test in enumerate(model.schema.offered)]
        facts = {
            "unit": model.unit,
            "known_tests": [t for t in tests if t["test"] in model.known],
            "others": [t for t in tests if t["test"] not in model.known],
            "tells": [t for t in tests if t["test"] in model.form.tells],
            "summary": self.by_name[name],
        }
        context = self._context(name, f"New case: {name}", words, filled_in)
        return render("start.html", 422 if words else 200, **context, **facts)

    def _context(self, name: str, title: str, words: str = "", filled_in: dict[str, str] | None = None) -> dict[str, Any]:
        shown = {"error": words, "filled_in": filled_in or {}}
        return {"title": title, "model": name, "tab": "case", "several": self.several, **shown}


def _recall_asked(request: Request, model: LearnedModel) -> tuple[int | None, int | None]:
    """The class and the position that the slider for recall is asked for, if any."""
    asked = {name: request.query_params.get(name, "") for name in ("of", "recall")}
    ends = {"of": model.schema.n_classes - 1, "recall": len(ASKED)}
    for name, text in asked.items():
        number = digits(text)
        if text and (number is None or number > ends[name] or len(text) > 3):
            raise Missing(f"the slider for recall has no {name}={text[:20]!r}; it goes from 0 to {ends[name]}")
    return digits(asked["of"]), digits(asked["recall"])


async def static(name: str) -> Response:
    """A file that all pages share."""
    if name not in _static():
        raise Missing(f"there is no file {name[:60]!r}")
    kind = KINDS[Path(name).suffix]
    return Response(_static()[name], media_type=kind, headers={"cache-control": "public, max-age=86400, immutable"})


def routes(service: Service, schema: dict[str, Any]) -> APIRouter:
    """All pages."""
    router, pages = APIRouter(), Pages(service, schema)

    def add(method: str, path: str, make: Callable[[Request, bytes], Response]) -> None:
        async def route(request: Request) -> Response:
            response: Response = await service.long(request, make, request, await request.body())
            return response

        router.add_api_route(path, route, methods=[method])

    add("GET", "/", pages.home)
    add("GET", "/m/{name}", pages.start)
    add("POST", "/m/{name}/start", pages.started)
    add("POST", "/m/{name}", pages.answer)
    add("POST", "/m/{name}/record.json", pages.record)
    add("GET", "/m/{name}/model", pages.about)
    add("GET", "/docs", pages.docs)
    add("GET", "/login", pages.login)
    add("POST", "/login", pages.logged_in)
    router.add_api_route("/static/{name}", static)
    return router
