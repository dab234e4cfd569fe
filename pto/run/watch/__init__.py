"""Watching a run: events, memory that logs accesses, stopping before an instruction."""
