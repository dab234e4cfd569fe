"""A matrix transposed."""

arguments = {"x": "i32[m, n]", "y": "out i32[n, m]"}
cases = [{"m": 40, "n": 96}, {"m": 130, "n": 70}]
sizes = {"m": (1, 150), "n": (1, 150)}


def reference(x):
    return x.T
