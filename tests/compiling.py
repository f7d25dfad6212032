"""Counts what JAX compiles."""

import contextlib
import logging

import jax


@contextlib.contextmanager
def compilations(of: str, caplog):
    """Collects the log lines with which JAX announces a compilation of a function of that name."""
    found: list[str] = []
    caplog.clear()
    with jax.log_compiles(), caplog.at_level(logging.WARNING):
        yield found
    found += [r.getMessage() for r in caplog.records if r.getMessage().startswith("Compiling") and of in r.getMessage()]
