"""One thread per process and the same examples every time, so that a failure can be repeated.

`HYPOTHESIS_PROFILE=explore pytest` draws new examples instead.
"""

import os
import signal

from hypothesis import HealthCheck, settings

# Started in the background, a shell's child ignores Ctrl-C, and so would the programs under test.
signal.signal(signal.SIGINT, signal.default_int_handler)

# Before NumPy is imported: its BLAS reads the number of threads once.
for threads in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(threads, "1")

settings.register_profile(
    "repeatable",
    derandomize=True,
    deadline=None,
    max_examples=40,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.register_profile("explore", deadline=None, max_examples=400)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "repeatable"))
