"""Turney's costs of medical tests, in Canadian dollars (P. Turney, JAIR 2, 1995; also in the UCI repository).

He gives two costs for a test: alone, and once another test of the same session is paid. The session costs the difference.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from decimal import Decimal

from askwise.errors import InputError

Setup = dict[str, tuple[str, list[str]]]

_BLOOD = "blood draw"
_SCAN = "thallium scan"
_EXERCISE = "exercise test"

# test: (alone, in a session that is paid, the session); all others cost 1.00
EXPENSIVE: dict[str, dict[str, tuple[str, str, str | None]]] = {
    "thyroid": {
        "TSH": ("22.78", "20.68", _BLOOD),
        "T3": ("11.41", "9.31", _BLOOD),
        "TT4": ("14.51", "12.41", _BLOOD),
        "T4U": ("11.41", "9.31", _BLOOD),
        "TBG": ("22.78", "20.68", _BLOOD),  # has no published cost: it is given the dearest blood test's
    },
    "heart": {
        "chol": ("7.27", "5.17", _BLOOD),
        "fbs": ("5.20", "3.10", _BLOOD),
        "restecg": ("15.50", "15.50", None),
        "thalach": ("102.90", "1.00", _SCAN),
        "exang": ("87.30", "1.00", _EXERCISE),
        "oldpeak": ("87.30", "1.00", _EXERCISE),
        "slope": ("87.30", "1.00", _EXERCISE),
        "ca": ("100.90", "100.90", None),
        "thal": ("102.90", "1.00", _SCAN),
    },
    "hepatitis": {
        "BILIRUBIN": ("7.27", "5.17", _BLOOD),
        "ALK_PHOSPHATE": ("7.27", "5.17", _BLOOD),
        "SGOT": ("7.27", "5.17", _BLOOD),
        "ALBUMIN": ("7.27", "5.17", _BLOOD),
        "PROTIME": ("8.30", "6.20", _BLOOD),
    },
    "pima": {"glucose_tol": ("17.61", "15.51", _BLOOD), "insulin": ("22.78", "20.68", _BLOOD)},
}
EXPENSIVE["ann_thyroid"] = {test: cost for test, cost in EXPENSIVE["thyroid"].items() if test != "TBG"}


def turney(
    tests: Sequence[str], expensive: Mapping[str, tuple[str, str, str | None]], derived: Sequence[str] = ()
) -> tuple[dict[str, str], Setup]:
    """The costs and the set-ups of some tests. Derived tests have no cost of their own."""
    costs = {test: expensive[test][1] if test in expensive else "1.00" for test in tests if test not in derived}
    setup: Setup = {}
    for test, (alone, paid, session) in expensive.items():
        amount = str(Decimal(alone) - Decimal(paid))
        if session is None:
            continue
        cost, members = setup.setdefault(session, (amount, []))
        if cost != amount:
            raise InputError(f"test {test!r} says that {session!r} costs {amount}, others that it costs {cost}; they must agree")
        members.append(test)
    return costs, setup
