"""Turney's costs of medical tests, in Canadian dollars (P. Turney, JAIR 2, 1995; also in the UCI repository).

He gives two costs for a test: alone, and once another test of the same session is paid. The session costs the difference.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

_SESSIONS = {"blood draw": "2.10", "thallium scan": "101.90", "exercise test": "86.30"}

# session: what its tests cost once it is paid. None: tests without a session. All others cost 1.00.
_TESTS: dict[str, dict[str | None, dict[str, str]]] = {
    "thyroid": {  # TBG has no published cost: it is given the dearest blood test's
        "blood draw": {"TSH": "20.68", "T3": "9.31", "TT4": "12.41", "T4U": "9.31", "TBG": "20.68"}
    },
    "heart": {
        "blood draw": {"chol": "5.17", "fbs": "3.10"},
        "thallium scan": {"thalach": "1.00", "thal": "1.00"},
        "exercise test": {"exang": "1.00", "oldpeak": "1.00", "slope": "1.00"},
        None: {"restecg": "15.50", "ca": "100.90"},
    },
    "hepatitis": {
        "blood draw": {"BILIRUBIN": "5.17", "ALK_PHOSPHATE": "5.17", "SGOT": "5.17", "ALBUMIN": "5.17", "PROTIME": "6.20"}
    },
    "pima": {"blood draw": {"glucose_tol": "15.51", "insulin": "20.68"}},
    "bupa": {"blood draw": {"mcv": "5.17", "alkphos": "5.17", "sgpt": "5.17", "sgot": "5.17", "gammagt": "7.76"}},
    "ann_thyroid": {"blood draw": {"TSH": "20.68", "T3": "9.31", "TT4": "12.41", "T4U": "9.31"}},
}


def turney(name: str, tests: Sequence[str], derived: Mapping[str, list[str]] | None = None) -> dict[str, Any]:
    """The costs, set-ups and derived tests of a data set, as `Raw` has them. Derived tests have no cost of their own."""
    paid = {test: cost for costs in _TESTS[name].values() for test, cost in costs.items()}
    return {
        "costs": {test: paid.get(test, "1.00") for test in tests if test not in (derived or {})},
        "setup": {session: (_SESSIONS[session], list(costs)) for session, costs in _TESTS[name].items() if session is not None},
        "derived": derived,
    }
