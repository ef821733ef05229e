"""Rows to learn from: tables and their encoding, splitting, the named data sets, and small problems with a known optimum."""
