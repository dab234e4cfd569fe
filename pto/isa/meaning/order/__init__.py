"""Meanings of flags, barriers and queues in a run in program order."""
