"""Meanings of vector micro-instructions on registers, masks, states and UB.

One file per subfamily.

A register is a NumPy array of 256 bytes, a mask a bool array of 256 (`masks.py`). Both are
immutable values: code writes only to an array that it has just made.
"""
