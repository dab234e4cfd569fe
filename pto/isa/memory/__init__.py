"""Rows that move bytes between memories by pointer, and between ranks."""
