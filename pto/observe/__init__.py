"""Watches a run and never changes it: the sanitizer. It reads events, not instructions."""

from pto.observe.sanitize import Sanitizer, Verdict, sanitize

__all__ = ["Sanitizer", "Verdict", "sanitize"]
