"""The reference engine: executes the meaning of each row on NumPy, one step per operation."""
