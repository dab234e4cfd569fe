"""`pto.diff`: a kernel against its reference, element by element."""
