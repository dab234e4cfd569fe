"""Runs in which effects happen as early or as late as the order between pipes allows."""

from pto.run.schedule.choice import PROGRAM, Schedule, parse_schedule
from pto.run.schedule.deferred import Scheduler

__all__ = ["PROGRAM", "Schedule", "Scheduler", "parse_schedule"]
