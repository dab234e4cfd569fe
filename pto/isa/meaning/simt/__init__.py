"""Meanings of work items: alone, with the other lanes of their warp, and in memory."""
