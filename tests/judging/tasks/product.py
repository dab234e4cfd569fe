"""A product of f16 matrices in f32."""

arguments = {"a": "f16[m, k]", "b": "f16[k, n]", "c": "out f32[m, n]"}
cases = [{"m": 48, "k": 96, "n": 64}, {"m": 64, "k": 64, "n": 128}]
sizes = {"m": (1, 200), "n": [64, 128], "k": (1, 200)}
nan = False


def reference(a, b):
    return a @ b
