"""Bounded waits on conditions. The Python tests sleep only here, between two looks."""

import time


class TimedOut(AssertionError):
    """A condition did not come true in time."""


def wait_until(condition, timeout, what, every=0.01):
    """Returns condition()'s first true value; fails after `timeout` seconds, naming `what`.

    `what` is text, or a function that makes it at the end (to say what was found instead).
    """
    deadline = time.monotonic() + timeout
    while True:
        value = condition()
        if value:
            return value
        if time.monotonic() >= deadline:
            raise TimedOut(f"not within {timeout} s: {what() if callable(what) else what}")
        time.sleep(every)


def pause_until(moment):
    """The kill schedule: returns at `moment` of time.monotonic()."""
    remaining = moment - time.monotonic()
    if remaining > 0.002:
        time.sleep(remaining - 0.001)
    while time.monotonic() < moment:
        pass
