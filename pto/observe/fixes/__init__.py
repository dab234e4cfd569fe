"""Proposed fixes for a program, tested before they are reported; and mutations that break it."""
