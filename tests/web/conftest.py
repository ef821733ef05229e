"""A service over two models: in this process, and in one of its own."""

import asyncio
from functools import partialmethod
from pathlib import Path

import pytest
from tests.web.process import Process


class Client:
    """httpx over the application in this process, one request after the other."""

    def __init__(self, app, lines) -> None:
        import httpx

        self.inner = httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://testserver")
        self.cookies, self.lines = self.inner.cookies, lines

    def request(self, method: str, path: str, **more):
        return asyncio.run(self.inner.request(method, path, **more))

    get = partialmethod(request, "GET")
    post = partialmethod(request, "POST")
    options = partialmethod(request, "OPTIONS")


@pytest.fixture(scope="session")
def models(frame, average):
    """One that asks differently from case to case and knows the age of everyone, and one that mixes two policies."""
    from tests.support.patients import PRICES, QUICK_FAMILY, classifier

    family = classifier(**PRICES, unit="€", known=["age"], algorithm="family", config=QUICK_FAMILY).fit(*frame)
    return {"patients": family.model_, "mixed": average.model_}


@pytest.fixture(scope="session")
def make_client(models):
    """Clients of services with other settings, or other models; `lines` is what they log."""
    import io

    from askwise.web.app import create_app
    from askwise.web.logs import Log
    from askwise.web.settings import Limits, ServiceSettings

    def make(limits=None, of=models, **settings):
        log = Log(io.StringIO(), settings.get("log_values", False))
        chosen = ServiceSettings(Limits(**{"rate": 0, **(limits or {})}), **{"local": False, **settings})
        return Client(create_app(of, chosen, log), log.stream)

    return make


@pytest.fixture(scope="session")
def client(make_client):
    return make_client()


@pytest.fixture(scope="session")
def model_files(models, tmp_path_factory) -> list[Path]:
    here = tmp_path_factory.mktemp("models")
    for name, model in models.items():
        model.save(here / f"{name}.askwise")
    return [here / f"{name}.askwise" for name in models]


@pytest.fixture(scope="session")
def served(model_files):
    process = Process(*model_files, "--rate", "0", "--time-limit", "1.5")
    yield process
    if process.process.poll() is None:
        process.stop()
