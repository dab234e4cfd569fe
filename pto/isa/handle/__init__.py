"""Rows that name places: tiles, views, pointers and windows on them. No data moves."""
