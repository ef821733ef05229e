"""The page and HTTP say of how many cases figures come, and how sure they are."""

import pytest
from tests.support.models import made


def test_figures_come_with_their_errors_and_the_number_of_cases(make_client):
    model = made("family")
    client = make_client(of={"m": model})
    page = client.get("/m/m/model").text
    assert "Measured on 400 cases that the fit kept apart; ± is one standard error" in page
    assert '<span class="quiet" id="here-accuracy-error">± 1.0\u00a0%</span>' in page
    assert page.count('<td class="right">400</td>') == len(model.frontier)
    assert "400 cases" in client.get("/").text
    card = client.get("/api/models/m").json()
    assert card["expected"] == model.expected
    assert {p["n"] for p in card["frontier"]} == {400}
    short = client.get("/api/models").json()["models"][0]
    assert (short["measured_on"], short["expected_accuracy_error"]) == (400, pytest.approx(0.01))
