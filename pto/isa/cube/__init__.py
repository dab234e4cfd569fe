"""Rows around the matrix unit by pointer: into L1 and L0, products, out through the fixpipe."""
