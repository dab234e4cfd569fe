"""Rows of SIMT: one work item, one element."""
