"""What vector micro-instructions do to registers, masks, states and UB; a file a subfamily.

A register is a NumPy array of 256 bytes, a mask a bool array of 256 (`masks.py`). Both are values:
nothing writes into one that it has not just made.
"""
