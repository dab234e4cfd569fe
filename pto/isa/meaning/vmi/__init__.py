"""Meanings of logical vectors: arrays of lanes of any length, masks with one bool per lane."""
