"""Settings for all tests: the same examples in every run, no time limit per example, nothing written to disk."""

from hypothesis import settings

settings.register_profile("askwise", derandomize=True, deadline=None, database=None, max_examples=60)
settings.load_profile("askwise")
