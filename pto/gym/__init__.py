"""Runs a checkout of PTO-Gym: every case with its own data, host files and judge.

Discovery, the host files, one case, many cases and the report have a file each. The semantics of
programs are not implemented here.
"""
