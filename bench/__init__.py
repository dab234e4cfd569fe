"""Benchmarks: every number is a ratio measured in one run, so that machines can be compared."""
