"""Running a checkout of PTO-Gym: every case with its own data, its own host files, its own judge.

Discovery, the host files, one case, many cases and the report live in files of their own here. What
a program computes does not live here.
"""
