"""Targets: what each profile of the ISA allows, and the devices that narrow it. Frozen data."""

from pto.target.profile import profile

__all__ = ["profile"]
