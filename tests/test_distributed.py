"""The shapes encoder, trained by several processes that hold a part of each batch, ends where one process ends."""

import contextlib
import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import distributed_worker as worker
import numpy as np
import pytest

REPOSITORY = Path(__file__).resolve().parents[1]
TIME_LIMIT = 600.0  # seconds; on two quiet cores four processes take 30


@contextlib.contextmanager
def started(commands: list[list[str]], folder: Path) -> Iterator[list[subprocess.Popen]]:
    """The processes; none of them outlives the block."""
    environment = {k: v for k, v in os.environ.items() if k != "XLA_FLAGS"}  # one device for each process
    environment |= {"PYTHONPATH": str(REPOSITORY), "JAX_PLATFORMS": "cpu"}
    processes: list[subprocess.Popen] = []
    with contextlib.ExitStack() as stack:
        try:
            for number, command in enumerate(commands):
                log = stack.enter_context((folder / f"{number}.log").open("w"))
                processes.append(subprocess.Popen(command, env=environment, stdout=log, stderr=log))
            yield processes
        finally:
            for process in processes:
                process.kill()
                process.wait()


def finish(processes: list[subprocess.Popen], time_limit: float) -> list[int | None]:
    """Exit statuses, once all have ended, one has failed or the time is over; None: still running."""
    end = time.monotonic() + time_limit
    while time.monotonic() < end:
        statuses = [process.poll() for process in processes]
        if all(status == 0 for status in statuses) or any(statuses):
            return statuses
        time.sleep(0.05)
    return [process.poll() for process in processes]


def trained(count: int, folder: Path) -> list[dict[str, np.ndarray]]:
    """What each of `count` processes reports of the training that they do together."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    program = str(REPOSITORY / "tests" / "distributed_worker.py")
    files = [folder / f"{rank}.npz" for rank in range(count)]
    commands = [[sys.executable, program, *map(str, (rank, count, port, file))] for rank, file in enumerate(files)]
    with started(commands, folder) as processes:
        statuses = finish(processes, TIME_LIMIT)
    logs = "\n".join(log.read_text()[-2000:] for log in sorted(folder.glob("*.log")))
    assert statuses == [0] * count, f"exit statuses {statuses}:\n{logs}"
    reports = []
    for file in files:
        with np.load(file) as report:
            reports.append(dict(report))
    return reports


@pytest.fixture(scope="module")
def alone(tmp_path_factory) -> dict[str, np.ndarray]:
    return trained(1, tmp_path_factory.mktemp("alone"))[0]


def test_training_alone_is_a_training(alone):
    """The losses fall from the start of ten steps, so that agreement about them says something."""
    assert len(alone["losses"]) == worker.STEPS
    assert len(set(alone["losses"])) == worker.STEPS
    assert alone["losses"][-2] < alone["losses"][0]


@pytest.mark.parametrize("count", [2, 4])
def test_several_processes_train_as_one(count, alone, tmp_path):
    reports = trained(count, tmp_path)
    for report in reports:
        assert report.keys() == alone.keys()
        for name, expected in alone.items():
            off, largest = np.max(np.abs(report[name] - expected)), np.max(np.abs(expected))
            assert off <= 1e-10 * largest, f"{name}: off by {off:.3g} of {largest:.3g}"


def test_no_process_outlives_a_failure(tmp_path):
    """One process fails at once, another would run for an hour."""
    programs = ["raise SystemExit(3)", "import time; time.sleep(3600)"]
    with started([[sys.executable, "-c", program] for program in programs], tmp_path) as processes:
        assert finish(processes, 60.0)[0] == 3
    assert processes[1].returncode == -9


def test_no_process_outlives_the_time_limit(tmp_path):
    with started([[sys.executable, "-c", "import time; time.sleep(3600)"]], tmp_path) as processes:
        assert finish(processes, 0.2) == [None]
    assert processes[0].returncode == -9
