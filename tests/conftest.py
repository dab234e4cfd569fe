"""Settings of the whole test run."""

from hypothesis import HealthCheck, settings

# A loaded machine is not a bug: no deadlines; and the same examples on every run.
settings.register_profile(
    "steady",
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile("steady")
