"""The disk refuses a write while a notebook runs: in the kernel, in the process that runs it, and in the harness."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from small_checkout import (
    CLOSE,
    LIGHT,
    NO_BYTECODE,
    OPEN,
    RUN_FAILED,
    SmallCheckout,
    by_precision,
    small_checkout,
)

from reproduce import records

# The device that is always full stands in for a full disk.
FULL = "import os\nos.symlink('/dev/full', LOG_PATH)"
# The log's first lines fit, a later one does not.
NEARLY_FULL = "import resource\nresource.setrlimit(resource.RLIMIT_FSIZE, (600, 600))"
NEXT_STEP = "No record was changed. Free space or mend the permissions, and run again.\n"


def limited(size: int) -> str:
    return f"import resource\nresource.setrlimit(resource.RLIMIT_FSIZE, ({size}, {size}))"


@pytest.fixture
def checkout(tmp_path) -> Iterator[SmallCheckout]:
    with small_checkout(tmp_path / "checkout") as made:
        yield made


def test_the_kernel_cannot_write_its_log(checkout):
    checkout.notebook("01_logs", LIGHT, by_precision(FULL, NEARLY_FULL), OPEN, "log.text('long', 'x' * 900)", CLOSE)
    answer = checkout.command("run", environment=NO_BYTECODE)
    assert answer.status == RUN_FAILED
    assert "a cell raised in cell 6: OSError: [Errno 28] No space left on device" in answer.block("01_logs", "float32")
    assert "a cell raised in cell 7: OSError: [Errno 27] File too large" in answer.block("01_logs", "float64")
    for precision in records.PRECISIONS:
        assert not checkout.run_folder("01_logs", precision).record.exists()


def test_the_executed_notebook_cannot_be_written(checkout):
    checkout.notebook("01_prints", "print('x' * 100_000)")
    answer = checkout.command("run", before=limited(20_000), environment=NO_BYTECODE)
    assert answer.status == RUN_FAILED
    for precision in records.PRECISIONS:
        block = answer.block("01_prints", precision)
        assert block.startswith("the run broke off") and "OSError: [Errno 27] File too large" in block
        assert "Read stderr.txt" in block


@pytest.mark.parametrize("size", [0, 1000])
def test_the_harness_cannot_write(checkout, size):
    checkout.notebook("01_any")
    # Nothing fits, or the notebook to be run does not.
    answer = checkout.command("run", before=limited(size), environment=NO_BYTECODE)
    assert answer.status == RUN_FAILED and "running" in answer.out if size else answer.out == ""
    assert answer.err.startswith("error: the disk refused") and answer.err.endswith(f"File too large. {NEXT_STEP}")


def a_file(path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("in the way", encoding="utf-8")


def a_folder(path: Path) -> None:
    (path / "in the way").mkdir(parents=True)


@pytest.mark.parametrize(
    ("where", "put"),
    [
        ("build", a_file),
        ("build/runs", a_file),
        ("build/.lock", a_folder),
        ("build/runs/01_any.float32", a_file),
        ("build/runs/01_any.float32/partial.jsonl", a_folder),
        ("build/runs/01_any.float32/status.json", a_folder),
        ("build/runs/01_any.float32/solved.ipynb", a_folder),
        ("build/runs/01_any.float32/stderr.txt", a_folder),
    ],
)
def test_something_is_in_the_way(checkout, where: str, put: Callable[[Path], None]):
    checkout.notebook("01_any")
    put(checkout.root / where)
    answer = checkout.here("run", "--jobs", "1")
    assert answer.status == RUN_FAILED
    assert answer.err.startswith(f"error: the disk refused ({checkout.root / where}")
    assert answer.err.endswith(NEXT_STEP)
    # float32 comes first and fails; float64 has no obstacle, but nothing goes on where the disk refuses.
    assert not list(checkout.root.rglob("executed.ipynb"))
    checkout.assert_tidy()


@pytest.mark.parametrize("command", [["run"], ["check"], ["check", "--json"]])
def test_the_output_goes_to_a_full_disk(checkout, command):
    checkout.notebook("01_any")
    with Path("/dev/full").open("w", encoding="utf-8") as full:
        answer = checkout.finish(checkout.start(*command, stdout=full))
    assert answer.status == RUN_FAILED
    assert answer.err == f"error: the disk refused: No space left on device. {NEXT_STEP}"
