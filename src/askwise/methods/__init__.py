"""Methods: one file, one `fit(problem, validation, budget, config, seed)` that returns a policy."""
