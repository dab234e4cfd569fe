"""Rows that order pipes, agents and blocks: flags, barriers, queues."""
