"""Handles as values: tiles, views, pointers, memrefs."""
