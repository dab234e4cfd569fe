"""Makes programs faster without changing a bit of their results: a search over schedules.

`search.py` tries passes of `transform/schedule.py` with their numbers and keeps what the timing
model finds fastest, `accept.py` checks the program that is kept, `report.py` reports the gain.
`grid.py` derives the grid of a launch from the stores of a program.
"""
