"""Meanings of the instructions around the matrix unit."""
