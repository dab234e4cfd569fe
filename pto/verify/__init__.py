"""Is this program legal on this profile? Every finding, in program order."""

from pto.verify.program import judge, verify

__all__ = ["judge", "verify"]
