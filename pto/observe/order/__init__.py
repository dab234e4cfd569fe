"""Happens-before order: clocks of pipes, flags and fences, scopes, streams."""
