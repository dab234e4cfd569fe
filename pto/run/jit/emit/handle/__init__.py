"""Handles as LLVM text."""
