"""Attacks on a running service, a second each: others are answered meanwhile. benchmarks/serve/attacks.py measures longer."""

import asyncio
import json

import pytest

from askwise.web.view import most_events
from benchmarks.serve.attacks import ATTACKS, CLIENTS, Seen, Target, attack, turn
from benchmarks.serve.client import request

SECONDS = 1.0


@pytest.mark.parametrize("kind", ATTACKS)
def test_honest_clients_are_served_while_it_runs(served, models, kind):
    """Far less is asked for than of the benchmark, since the machine that tests run on may be busy."""
    at = Target(served.port, "patients", models["patients"].schema.tests[1], most_events(models["patients"]))
    cases = [json.dumps({"case_id": str(i), "answers": {"town": ["Bonn", "Rom"][i % 2]}}) for i in range(10)]
    requests = [request("/api/models/patients/next", case) for case in cases]
    quiet, attacked = Seen(), Seen()

    async def under_attack():
        enemy = asyncio.create_task(attack(kind, at, SECONDS + 0.3))
        await asyncio.sleep(0.2)
        await turn(at.port, requests, SECONDS, attacked)
        enemy.cancel()

    asyncio.run(turn(at.port, requests, SECONDS / 2, quiet))
    asyncio.run(under_attack())
    assert not quiet.failed
    assert attacked.failed <= CLIENTS  # who connects in the thick of it may have to do so again
    assert attacked.rate > 0.15 * quiet.rate
    assert attacked.p99 < max(20 * quiet.p99, 1000)
