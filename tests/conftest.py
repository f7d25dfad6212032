"""JAX as strict as it gets, both precisions, and Hypothesis without chance."""

from collections.abc import Iterator

import jax
import jaxtyping
import pytest
from hypothesis import HealthCheck, settings

# Only jax.config.update works for all three from JAX 0.4.30 to the newest release.
jax.config.update("jax_numpy_dtype_promotion", "strict")
jax.config.update("jax_numpy_rank_promotion", "raise")
# The default changed in JAX 0.5.0; a fixed value gives one random stream on all releases.
jax.config.update("jax_threefry_partitionable", True)

# Derandomised: a test that fails must fail again. No time limit: the first example of a shape compiles. The `precision`
# fixture is set once for all examples of a test, which is what is wanted here.
settings.register_profile(
    "fixed",
    derandomize=True,
    database=None,
    deadline=None,
    max_examples=25,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
settings.load_profile("fixed")


@pytest.fixture(params=["float32", "float64"])
def precision(request: pytest.FixtureRequest) -> Iterator[str]:
    """Dtype name; JAX's 64-bit mode is on exactly while the test runs in float64."""
    before = jax.config.jax_enable_x64
    jax.config.update("jax_enable_x64", request.param == "float64")
    yield request.param
    jax.config.update("jax_enable_x64", before)


@pytest.fixture
def x64() -> Iterator[None]:
    """64-bit mode for one test that does not need both precisions."""
    before = jax.config.jax_enable_x64
    jax.config.update("jax_enable_x64", True)
    yield
    jax.config.update("jax_enable_x64", before)


@pytest.fixture
def as_installed() -> Iterator[None]:
    """Switches the run-time checks of annotations off, so that a test meets the errors that a user meets."""
    jaxtyping.config.update("jaxtyping_disable", True)
    yield
    jaxtyping.config.update("jaxtyping_disable", False)
