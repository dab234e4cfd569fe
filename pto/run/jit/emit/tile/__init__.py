"""Tile instructions as LLVM text."""
