"""Pleiad beside the service's own query planner: the same texts, two answers, every difference by its cause.

The planner is a native library of the service's front end with a small Python caller. It is no part of this
repository; the check runs where it lies beside the checkout (``../shared/oracle``). Answers recorded from it
lie in ``../shared/reference`` and are tests wherever they are found.
"""
