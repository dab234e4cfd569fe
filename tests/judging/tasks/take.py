"""Rows of a table, chosen by indices; results are copies by right."""

arguments = {"table": "t[n, d]", "index": "i32[m]", "rows": "out t[m, d]"}
cases = [{"n": 64, "m": 40, "d": 32, "t": "f32"}, {"n": 512, "m": 24, "d": 64, "t": "f16"}]
sizes = {"n": (1, 600), "m": (1, 50)}


def draw(case, random):
    return {"index": random.integers(0, case["n"], case["m"])}


def reference(table, index):
    return table[index]
