"""Rows of vector micro-instructions: all that touches registers, masks and alignment states."""
