"""Watching a run: events, memory that tells what is touched, stopping before an instruction."""
