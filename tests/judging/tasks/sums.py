"""The sum of each row."""

arguments = {"x": "f32[m, n]", "y": "out f32[m, 1]"}
cases = [{"m": 40, "n": 96}, {"m": 300, "n": 256}]
sizes = {"m": (1, 400), "n": (1, 256)}
precision = {"rtol": 1e-4, "atol": 1e-3}


def reference(x):
    return x.sum(axis=1, keepdims=True)
