"""Meanings of tile instructions, one file per family."""
