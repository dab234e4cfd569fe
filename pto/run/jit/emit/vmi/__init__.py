"""Logical vectors in compiled code: an LLVM vector each."""
