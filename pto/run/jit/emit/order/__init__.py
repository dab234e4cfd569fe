"""Flags and barriers as LLVM text."""
