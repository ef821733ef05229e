"""Rows to learn from: the named data sets, splitting and scaling, and small problems whose optimum is known."""
