"""Legality rules: sentences with a test, shared by the rows of many families."""
