"""Runs that are stopped: by a limit, a signal, the death of a process, or because another run is under way."""

import signal
import subprocess
from collections.abc import Iterator

import psutil
import pytest
from small_checkout import (
    AGREES,
    CANNOT_COMPARE,
    CLOSE,
    HOLD,
    LIGHT,
    OPEN,
    RUN_FAILED,
    SmallCheckout,
    by_precision,
    small_checkout,
    wait_until,
)

from reproduce import records

SLEEPS = "import time\ntime.sleep(1000)"
# Takes every interruption for an invitation to go on.
STUBBORN = """
while True:
    try:
        while True:
            pass
    except KeyboardInterrupt:
        pass
"""


@pytest.fixture
def checkout(tmp_path) -> Iterator[SmallCheckout]:
    with small_checkout(tmp_path / "checkout") as made:
        yield made


def start_and_hold(checkout: SmallCheckout, *arguments: str, runs: int) -> subprocess.Popen:
    """Start a run and wait until this many of its kernels wait in a cell."""
    process = checkout.start("run", *arguments)
    wait_until(lambda: len(checkout.holding()) == runs or process.poll() is not None, "cells run")
    assert process.poll() is None, process.communicate()
    return process


def let_go(checkout: SmallCheckout) -> None:
    for folder in checkout.holding():
        (folder / "go").touch()


def part(checkout: SmallCheckout, module: str) -> psutil.Process:
    """The one process that runs this module."""
    (found,) = [each for each in checkout.processes() if module in each.cmdline()]
    return found


def test_a_cell_outlasts_its_limit(checkout):
    checkout.notebook("01_slow", by_precision(SLEEPS, STUBBORN), OPEN, CLOSE)
    answer = checkout.command("run", "--cell-limit", "4")
    assert answer.status == RUN_FAILED
    for precision in records.PRECISIONS:
        block = answer.block("01_slow", precision)
        assert block.startswith("a cell ran too long in cell ") and "its limit is 4 s" in block
        assert "with a higher --cell-limit" in block


def test_a_notebook_outlasts_its_limit(checkout):
    checkout.notebook("01_slow", SLEEPS)
    answer = checkout.command("run", "--notebook-limit", "3")
    assert answer.status == RUN_FAILED
    for precision in records.PRECISIONS:
        block = answer.block("01_slow", precision)
        assert block.startswith("the notebook ran too long: its limit is 3 s")
        assert "with a higher --notebook-limit" in block


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_everything_in_order(checkout, number):
    checkout.notebook("01_slow", OPEN, HOLD, CLOSE)
    # With one run at a time, the second is still waiting when the signal comes, and must not start.
    process = start_and_hold(checkout, "--jobs", "1", runs=1)
    before = checkout.committed()
    process.send_signal(number)
    answer = checkout.finish(process)
    assert answer.status == RUN_FAILED and checkout.committed() == before
    assert answer.err == "interrupted: every process was ended; no record was changed. Run again when you like.\n"
    assert len(checkout.holding()) == 1 and not list(checkout.paths.build.glob("runs/*/record.jsonl"))
    assert answer.out.count("failed: interrupted") == 1 and answer.out.count("running") == 1
    checked = checkout.here("check")
    assert checked.status == RUN_FAILED
    assert "incomplete: interrupted: the harness was stopped. Run again; finished notebooks" in checked.out


def test_the_harness_is_killed(checkout):
    checkout.notebook("01_slow", LIGHT, OPEN, HOLD, CLOSE)
    process = start_and_hold(checkout, "--jobs", "2", runs=2)
    before = checkout.committed()
    process.kill()
    process.communicate()
    # Nobody is left to end the kernels, so they must notice by themselves, and soon.
    wait_until(lambda: not checkout.processes(), "kernels outlived the harness", 30)
    assert checkout.committed() == before
    for folder in checkout.temporary.iterdir():
        # A process that is killed cannot tidy up; the next run must not mind.
        assert folder.name.startswith("reproduce-")
    checked = checkout.here("check")
    assert checked.status == RUN_FAILED
    for precision in records.PRECISIONS:
        assert f"01_slow {precision}: incomplete: interrupted: the harness was stopped. Run again" in checked.out
    let_go(checkout)
    process = checkout.start("run")
    out, err = process.communicate()
    assert process.returncode == AGREES, out + err
    assert out.count("running (the last run did not end well)") == 2 and out.endswith("2 run.\n")


def test_a_process_between_harness_and_kernel_is_killed(checkout):
    checkout.notebook("01_slow", HOLD)
    process = start_and_hold(checkout, "--jobs", "1", runs=1)
    part(checkout, "reproduce.execute").kill()
    wait_until(lambda: len(checkout.holding()) == 2, "the next run starts")
    part(checkout, "ipykernel_launcher").kill()
    answer = checkout.finish(process)
    assert answer.status == RUN_FAILED
    assert "the run broke off: its process left no outcome (exit status -9)" in answer.out
    assert "the kernel died in cell 4" in answer.out


def test_two_runs_at_once(checkout):
    checkout.notebook("01_slow", LIGHT, OPEN, HOLD, CLOSE)
    first = start_and_hold(checkout, "--jobs", "2", runs=2)
    for command in (["run"], ["run", "--force"], ["record"]):
        second = checkout.here(*command)
        assert second.status == CANNOT_COMPARE and second.out == ""
        assert f"another run is under way in this checkout (process {first.pid}). Nothing was changed." in second.err
        assert "Wait until it ends, then run again." in second.err
    let_go(checkout)
    answer = checkout.finish(first)
    assert answer.status == AGREES and answer.out.endswith("2 run.\n")
    for precision in records.PRECISIONS:
        assert records.read(checkout.run_folder("01_slow", precision).record).header.precision == precision
    # The lock goes with its holder.
    assert checkout.here("run").out.endswith("0 run, 2 fresh and not run again.\n")
