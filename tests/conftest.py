"""Every test sees eight CPU devices and strict broadcasting, and finds what earlier runs compiled."""

import os
from importlib.metadata import version
from pathlib import Path

# Set before JAX is imported, and inherited by the processes that tests start. A GPU run says JAX_PLATFORMS=cuda.
os.environ.setdefault("JAX_PLATFORMS", "cpu")
# A search and a Go step compile in 8 s and load in 1.5 s, with equal results to the bit. --cache-clear empties it.
os.environ.setdefault("JAX_COMPILATION_CACHE_DIR", str(Path(__file__).parents[1] / ".pytest_cache" / "d" / "xla"))
os.environ.setdefault("JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS", "0.1")
# Threads of XLA's CPU pool, by default one a core. Each of the eight devices waits for the others inside an all-reduce
# in a thread of this pool: with as few threads as devices all can be taken while a device has not come yet.
os.environ.setdefault("PJRT_NPROC", "32")
# Tests compile far more than they compute: LLVM without optimisation and, where XLA still knows the flag (it aborts on
# one it does not), the older emitter halve their time.
os.environ.setdefault(
    "XLA_FLAGS",
    "--xla_backend_optimization_level=0"
    + (" --xla_cpu_use_fusion_emitters=false" if version("jaxlib").startswith("0.10.") else ""),
)

import hypothesis
import jax
import pytest

jax.config.update("jax_num_cpu_devices", 8)
jax.config.update("jax_numpy_rank_promotion", "raise")

# No deadline: a property's first example compiles. Derandomized: a failure in CI fails here too.
hypothesis.settings.register_profile("azjax", deadline=None, derandomize=True)
hypothesis.settings.load_profile("azjax")


@pytest.fixture
def allow_rank_promotion():
    """For tests that run pgx's games, which broadcast arrays such as (513, 2) against (2,)."""
    with jax.numpy_rank_promotion("allow"):
        yield
