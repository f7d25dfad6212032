"""Notebooks that go wrong as they run: each gets its own verdict, a next step and status 3, and touches nothing else.

Each notebook here has one fault in float32 and another in float64, and all of them are run by one command.
"""

import json
from collections.abc import Iterator

import msgspec
import pytest
from small_checkout import (
    CANNOT_COMPARE,
    CLOSE,
    LIGHT,
    OPEN,
    RUN_FAILED,
    Finished,
    SmallCheckout,
    by_precision,
    small_checkout,
)

from reproduce import records

RAISES = "raise ValueError('wrong [/red] \\x1b[31mcolour\\a ' + 'and so on ' * 1000)"
KILLED = "import os\nos.kill(os.getpid(), 9)"
LEAVES = "import os\nos._exit(0)"
ABORTS = "import os\nos.environ['XLA_FLAGS'] = '--xla_no_such_flag=1'\nimport jax\njax.numpy.zeros(1)"
STOPS_EARLY = "import sys\nsys.exit(0)"
STOPS_LATE = f"import sys\n{CLOSE}\nsys.exit(0)"
BY_HAND = "import os\ndel os.environ['REPRODUCE_SOURCE_SHA256']"
LEAVES_A_PROCESS = """
import os, subprocess, time
subprocess.Popen(["sleep", "1000"])
if not os.fork():
    time.sleep(1000)
"""
PRINTS = "import os\nprint('x' * 5_000_000)\nos.write(1, b'written past Python')"


@pytest.fixture(scope="module")
def checkout(tmp_path_factory) -> Iterator[SmallCheckout]:
    with small_checkout(tmp_path_factory.mktemp("faults") / "checkout") as made:
        made.notebook("01_dies", by_precision(RAISES, KILLED), OPEN, CLOSE)
        made.notebook("02_leaves", OPEN, by_precision(LEAVES, ABORTS), CLOSE)
        made.notebook("03_stops", by_precision("pass", STOPS_EARLY), OPEN, STOPS_LATE)
        made.notebook("04_logs", LIGHT, by_precision(BY_HAND, "pass"), OPEN, by_precision(CLOSE, "pass"))
        made.notebook(
            "05_another",
            LIGHT,
            by_precision("stem = '09_other'", "PRECISION = 'float32'; stem = '{stem}'"),
            OPEN.replace('"{stem}"', "stem"),
            CLOSE,
        )
        made.notebook("06_well", LIGHT, by_precision(LEAVES_A_PROCESS, PRINTS), OPEN, CLOSE)
        yield made


@pytest.fixture(scope="module")
def finished(checkout) -> Finished:
    return checkout.command("run", "--jobs", "3")


FAULTS = [
    ("01_dies", "float32", "a cell raised in cell 4: ValueError: wrong [/red] colour and so on", "mend the source"),
    ("01_dies", "float64", "the kernel died in cell 4: killed from outside", "Free memory"),
    ("02_leaves", "float32", "the kernel died in cell 5: killed from outside", "Free memory"),
    ("02_leaves", "float64", "Unknown flag in XLA_FLAGS: --xla_no_such_flag=1", "stderr.txt"),
    ("03_stops", "float32", "no environment: the kernel did not write it", "run again"),
    ("03_stops", "float64", "no whole record: ", "Does the last cell call log.close()?"),
    ("04_logs", "float32", "SHA-256 of the source: none, as when run by hand, expected", "Give RunLog"),
    ("04_logs", "float64", "no whole record: ", "Does the last cell call log.close()?"),
    ("05_another", "float32", "the record is of something else: stem: 09_other, expected 05_another", "Give RunLog"),
    ("05_another", "float64", "the record is of something else: precision: float32, expected float64", "Give RunLog"),
]


@pytest.mark.parametrize(("stem", "precision", "said", "next_step"), FAULTS)
def test_each_fault_has_its_verdict_and_next_step(finished, stem, precision, said, next_step):
    block = finished.block(stem, precision)
    assert said in block and next_step in block
    assert f"build/runs/{stem}.{precision} " in block
    # A message of thousands of words is not for a terminal.
    assert len(block) < 3500


def test_the_status_says_that_a_run_failed(finished):
    assert finished.status == RUN_FAILED
    assert finished.out.count("failed: ") == len(FAULTS) and finished.err == ""


def test_no_fault_leaves_a_record(checkout, finished):
    for stem, precision, *_ in FAULTS:
        assert not checkout.run_folder(stem, precision).record.exists()


def test_what_was_logged_before_the_fault_is_there_to_read(checkout, finished):
    header, *entries = checkout.run_folder("02_leaves").partial.read_bytes().splitlines()
    assert json.loads(header)["stem"] == "02_leaves"
    assert [json.loads(line)["name"] for line in entries] == ["product", "halves", "rate_is_positive"]
    executed = json.loads(checkout.run_folder("01_dies").executed.read_bytes())
    assert any(output.get("ename") == "ValueError" for cell in executed["cells"] for output in cell.get("outputs", []))


@pytest.mark.parametrize("precision", ["float32", "float64"])
def test_the_other_notebooks_go_on(checkout, finished, precision):
    # This one starts processes that would not end by themselves (float32), and prints five megabytes (float64).
    assert f"+ 06_well {precision}: done in " in finished.out
    record = records.read(checkout.run_folder("06_well", precision).record)
    assert [entry.name for entry in record.entries] == ["product", "halves", "rate_is_positive"]


def test_what_a_kernel_writes_past_python_is_kept_apart(checkout, finished):
    assert "written past Python" in checkout.run_folder("06_well", "float64").stderr.read_text(encoding="utf-8")


def test_check_repeats_each_verdict(checkout, finished):
    answer = checkout.here("check")
    assert answer.status == RUN_FAILED
    for stem, precision, *_ in FAULTS:
        ended = finished.block(stem, precision).split(":")[0].split(" in cell")[0]
        assert f"{stem} {precision}: incomplete: {ended}: " in answer.out
    last = answer.out.strip().splitlines()[-1]
    assert last.startswith("A run failed, so nothing can be said of all of 01_dies, 02_leaves")


def test_check_says_so_to_a_machine_too(checkout, finished):
    answer = json.loads(checkout.here("check", "--json", "--nb", "01").out)
    assert answer["status"] == RUN_FAILED
    incomplete = answer["notebooks"][0]["runs"]["float64"]["incomplete"]
    assert (incomplete["ended"], incomplete["cell"]) == ("the kernel died", 4)


@pytest.mark.parametrize("how", ["removed", "by hand"])
def test_a_record_put_in_place_of_the_run_is_not_compared(checkout, finished, tmp_path, how):
    changed = checkout.copy(tmp_path / "copy")
    file = changed.run_folder("06_well").record
    record = records.read(file)
    if how == "removed":
        file.unlink()
    else:
        header = msgspec.structs.replace(record.header, source_sha256="")
        file.write_bytes(records.encode(header, list(record.entries)))
    answer = changed.here("check", "--nb", "06")
    assert answer.status == CANNOT_COMPARE
    assert f"{file}: changed or removed after the run; make reproduce runs it again" in answer.out
