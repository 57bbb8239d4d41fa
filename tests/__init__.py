"""The tests; ``CONTRIBUTING.md`` has their tiers."""

import os

# Tests run beside each other: more threads would only get into each other's way. PyTorch reads it when it is imported.
os.environ.setdefault("OMP_NUM_THREADS", "1")
