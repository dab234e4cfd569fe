"""Meanings of the scalar unit: arithmetic, and queries of its core."""
