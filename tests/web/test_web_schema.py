"""Schemathesis reads the OpenAPI schema and tries what it allows, and what it does not, on a real process."""

import httpx
import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, given, settings
from schemathesis import GenerationMode
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi.checks import content_type_conformance, response_schema_conformance, status_code_conformance

CHECKS = [not_a_server_error, content_type_conformance, response_schema_conformance, status_code_conformance]
OPERATIONS = ["GET /health", "GET /metrics", "GET /api/models", "GET /api/models/{model}",
              *(f"POST /api/models/{{model}}/{what}" for what in ("next", "trace", "batch"))]  # fmt: skip


@pytest.fixture(scope="module")
def described(served):
    return schemathesis.openapi.from_dict(httpx.get(f"{served.url}/openapi.json").json())


def test_all_operations_are_tried(described):
    found = {f"{o.ok().method.upper()} {o.ok().path}" for o in described.get_all_operations()}
    assert found == set(OPERATIONS)


# of what has no body nothing can be wrong: every name could be a model's
MODES = [(name, mode) for name in OPERATIONS for mode in GenerationMode if name.startswith("POST") or mode.is_positive]


@pytest.mark.parametrize(("name", "mode"), MODES, ids=lambda part: getattr(part, "value", part))
def test_nothing_that_is_tried_is_a_server_error(described, served, name, mode):
    method, path = name.split()
    operation = described[path][method]
    some = 50 if method == "POST" else 10

    @settings(max_examples=some, suppress_health_check=list(HealthCheck), phases=[Phase.explicit, Phase.generate])
    @given(case=operation.as_strategy(generation_mode=mode))
    def tried(case):
        if method == "POST" and len(tried.statuses) % 4:
            case.path_parameters["model"] = "patients"  # most made-up names are no models
        response = case.call(base_url=served.url)
        tried.statuses.append(response.status_code)
        case.validate_response(response, checks=CHECKS)

    tried.statuses = []
    tried()
    assert max(tried.statuses) < 500
    assert len(tried.statuses) >= 5 or "{" not in path
