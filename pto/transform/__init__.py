"""Passes: changes of a program that keep what it computes. `pto opt` shows what one does."""
