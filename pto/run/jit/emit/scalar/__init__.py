"""Scalar arithmetic and control flow as LLVM text."""
