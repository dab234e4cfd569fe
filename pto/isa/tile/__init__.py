"""Rows of tile instructions, one file a family."""
