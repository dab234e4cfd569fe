"""Rows to places that a permutation names: each is written once."""

import numpy as np

arguments = {"table": "f32[n, d]", "index": "i32[n]", "rows": "out f32[n, d]"}
cases = [{"n": 16, "d": 32}, {"n": 300, "d": 64}]
sizes = {"n": (1, 300)}


def draw(case, random):
    return {"index": random.permutation(case["n"])}


def reference(table, index):
    rows = np.zeros_like(table)
    rows[index] = table
    return rows
