"""Tiles as expressions: each operator and function is one instruction, or a short sequence that its
docstring names, into a tile of its own."""
