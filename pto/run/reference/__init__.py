"""The reference engine: a row's meaning on NumPy, one step an operation."""
