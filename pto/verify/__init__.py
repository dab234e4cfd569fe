"""Is this program legal on this profile? Every finding, in program order."""

from pto.verify.program import verify
from pto.verify.target import judge

__all__ = ["judge", "verify"]
