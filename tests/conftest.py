"""Settings for all tests: the same examples in every run, no time limit per example, nothing written to disk. And classifiers
that several files look at, each fitted once."""

import pytest
from hypothesis import settings

settings.register_profile("askwise", derandomize=True, deadline=None, database=None, max_examples=60)
settings.load_profile("askwise")


@pytest.fixture(scope="session")
def frame():
    from tests.support.patients import patients  # here, since it needs pandas, which not all tests do

    return patients(160, seed=0)


@pytest.fixture(scope="session")
def others():
    """Patients that no fit has seen."""
    from tests.support.patients import patients

    return patients(90, seed=1)


@pytest.fixture(scope="session")
def free(frame):
    """Without a budget."""
    from tests.support.patients import PRICES, classifier

    return classifier(**PRICES).fit(*frame)


@pytest.fixture(scope="session")
def average(frame, free):
    """An average budget that lies between two policies, so that it mixes them."""
    from tests.support.patients import PRICES, classifier

    from askwise import AverageBudget

    dearest = free.frontier_[-1]["cost"]
    fitted = classifier(**PRICES, budget=AverageBudget(round(dearest / 2, 2))).fit(*frame)
    assert 0 < fitted.model_.blend.share < 1
    return fitted


@pytest.fixture(scope="session")
def hard(frame):
    from tests.support.patients import PRICES, classifier

    from askwise import HardBudget

    return classifier(**PRICES, budget=HardBudget("1.3")).fit(*frame)


@pytest.fixture(scope="session", params=["free", "average", "hard"])
def fitted(request):
    return request.getfixturevalue(request.param)
