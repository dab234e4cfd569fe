"""Tile expressions: each operator and function is one instruction, or a short sequence that its
docstring names; the result is a new tile."""
