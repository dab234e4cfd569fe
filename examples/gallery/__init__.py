"""Twelve kernels as a person writes them first: tile expressions, any size, a2a3 and a5."""
