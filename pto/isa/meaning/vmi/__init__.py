"""Meaning of logical vectors: an array of lanes, a mask one bool a lane, whatever the registers."""
