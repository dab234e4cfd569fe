"""Rows of the scalar unit and of control flow around it."""
