"""Columns are scaled and shifted."""

arguments = {"x": "f32[m, n]", "scale": "f32[n]", "shift": "f32[n]", "y": "out f32[m, n]"}
cases = [{"m": 40, "n": 96}, {"m": 300, "n": 128}]
sizes = {"m": (1, 400), "n": (1, 128)}


def reference(x, scale, shift):
    return x * scale + shift
