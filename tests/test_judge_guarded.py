"""A stranger's function may do what it likes: the call comes back and says what happened."""

import functools
import subprocess
import sys
import textwrap
import threading
import time

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from contrastive_jax.exercises import guarded


def test_the_value_comes_back_unchanged():
    marker = object()
    found = guarded.call(lambda x, *, y: (x, y), (marker,), {"y": 2})
    assert found == guarded.Call(value=(marker, 2), seconds=found.seconds) and 0 < found.seconds < 1


def divides(x):
    y = x - 1
    return helper(y)


def helper(y):
    return 1 // y  # the line that fails


def test_an_exception_names_the_deepest_line_of_the_learner():
    raised = guarded.call(divides, (1,)).raised
    assert raised is not None
    assert (raised.kind, raised.source) == ("ZeroDivisionError", "return 1 // y  # the line that fails")
    assert raised.line == helper.__code__.co_firstlineno + 1
    assert "ArithmeticError" in raised.family


def test_lines_of_libraries_are_not_the_learners():
    def shapes(x):
        return jnp.ones(3) @ jnp.ones(4)

    raised = guarded.call(shapes, (1,)).raised
    assert raised is not None and raised.source == "return jnp.ones(3) @ jnp.ones(4)"


def leaves(how):
    raise how


@pytest.mark.parametrize("how", [SystemExit(3), KeyboardInterrupt(), GeneratorExit(), MemoryError("much")])
def test_a_function_cannot_end_the_kernel(how):
    raised = guarded.call(leaves, (how,)).raised
    assert raised is not None and raised.kind == type(how).__name__


def test_endless_recursion_is_an_exception():
    def deeper(x):
        return deeper(x)

    raised = guarded.call(deeper, (1,)).raised
    assert raised is not None and raised.kind == "RecursionError" and raised.source == "return deeper(x)"


def test_an_exception_without_words():
    class Mute(Exception):
        def __str__(self):
            raise ValueError

    raised = guarded.call(leaves, (Mute(),)).raised
    assert raised is not None and (raised.kind, raised.message) == ("Mute", "")


def test_a_long_message_is_cut():
    raised = guarded.call(leaves, (ValueError("x" * 10**6),)).raised
    assert raised is not None and raised.message == "x" * guarded.MESSAGE_LIMIT


def forever(x):
    while True:
        x = x + 1


def stubborn(x):
    while True:
        try:
            while True:
                x = x + 1
        except Exception:
            pass


def stubborn_twice(x):
    for _ in range(2):
        try:
            while True:
                x = x + 1
        except BaseException:
            pass
    return x


@pytest.mark.parametrize("function", [forever, stubborn, stubborn_twice])
def test_an_endless_loop_is_ended(function):
    start = time.monotonic()
    found = guarded.call(function, (0,), limit=0.2)
    assert time.monotonic() - start < 2.5
    assert (found.too_long, found.stuck, found.value, found.raised) == (True, False, None, None)
    assert not [thread for thread in threading.enumerate() if thread.name == "judged"]


def test_endless_compiled_code_is_reported_as_stuck():
    # In a process of its own, which it may spoil.
    program = """
        import os
        import jax
        from contrastive_jax.exercises import guarded

        found = guarded.call(lambda x: jax.lax.while_loop(lambda i: i >= 0, lambda i: i * 0, x), (1,), limit=1.0)
        print(found.too_long, found.stuck, flush=True)
        os._exit(0)
    """
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(program)], capture_output=True, text=True, timeout=60, check=False
    )
    assert (done.stdout, done.returncode) == ("True True\n", 0), done.stderr


def test_prints_are_caught_and_shortened(capsys):
    def loud(x):
        for _ in range(1000):
            print("0123456789" * 10)
        print("to stderr", file=sys.stderr)
        return x

    found = guarded.call(loud, (1,))
    assert (found.value, found.printed_size) == (1, 1000 * 101 + 10)
    assert len(found.printed) == guarded.PRINTED_LIMIT and found.printed.startswith("0123456789")
    assert capsys.readouterr() == ("", "")
    print("as before")
    assert capsys.readouterr().out == "as before\n"


def test_a_small_print_is_kept_whole():
    assert guarded.call(print, ("shape", (2, 3))).printed == "shape (2, 3)\n"


def test_settings_of_jax_are_put_back(x64):
    def meddles(x):
        jax.config.update("jax_enable_x64", False)
        jax.config.update("jax_default_matmul_precision", "highest")
        return x

    found = guarded.call(meddles, (1,))
    assert sorted(found.changed) == ["jax_default_matmul_precision", "jax_enable_x64"]
    assert jax.config.jax_enable_x64 is True and jax.config.jax_default_matmul_precision is None


def test_a_call_has_the_settings_of_the_caller():
    def dtype(_):
        return str(jnp.sum(jnp.asarray(np.ones(2))).dtype)

    with jax.default_matmul_precision("float32"), jax.numpy_dtype_promotion("standard"):
        seen = guarded.call(
            lambda: (jax.config.jax_default_matmul_precision, jax.config.jax_numpy_dtype_promotion), ()
        ).value
    assert seen == ("float32", "standard")
    assert guarded.call(dtype, (1,)).value == "float32"
    jax.config.update("jax_enable_x64", True)
    try:
        assert guarded.call(dtype, (1,)).value == "float64"
    finally:
        jax.config.update("jax_enable_x64", False)


def test_an_interrupt_from_outside_ends_the_call_and_goes_on(monkeypatch):
    join = threading.Thread.join

    def interrupted(self, timeout=None):
        monkeypatch.setattr(threading.Thread, "join", join)
        raise KeyboardInterrupt

    monkeypatch.setattr(threading.Thread, "join", interrupted)
    with pytest.raises(KeyboardInterrupt):
        guarded.call(forever, (0,), limit=5.0)
    assert not [thread for thread in threading.enumerate() if thread.name == "judged"]


def test_whatever_can_be_called_is_called():
    assert guarded.call(len, ([1, 2],)).value == 2
    assert guarded.call(functools.partial(max, 3), (2,)).value == 3
    assert guarded.call(jax.jit(lambda x: x + 1), (1,)).value == 2
