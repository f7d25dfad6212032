"""`bisect`: the search itself, the entry or probe that it watches, and the releases that it walks."""

import itertools
import re
import subprocess
import sys
from collections.abc import Callable, Iterator

import pytest
from builders import ENTRIES, header
from small_checkout import AGREES, CANNOT_COMPARE, DIFFERS, RUN_FAILED, Finished, small_checkout
from small_matrix import SmallMatrix

from reproduce import releases, watched
from reproduce.errors import HarnessError
from reproduce.hunt import Found, search
from reproduce.records import Record

LISTED = "0.8.0, 0.7.2, 0.7.1, 0.7.0, 0.6.2"
PIP = f"from reproduce import releases\nreleases._ask_pip = lambda: 'Available versions: {LISTED}'\n"
# The fingerprint of a probe, as the release that runs it has it.
PROBES = """
import importlib.metadata
def fingerprints():
    late = importlib.metadata.version("jax") in ("0.7.2", "0.8.0")
    return {"long_sum": "new" if late else "old", "exp": "same"}
"""


@pytest.fixture
def matrix(tmp_path) -> Iterator[SmallMatrix]:
    with small_checkout(tmp_path / "checkout") as small:
        yield SmallMatrix(small, tmp_path / "my tools")


def bisect(matrix: SmallMatrix, entry: str, first: str = "0.6.2", last: str = "0.8.0", *more: str) -> Finished:
    return matrix.command("bisect", "--entry", entry, "--from", first, "--to", last, *more, before=PIP)


def mover(first_moved: int, broken: tuple[str, ...] = ()) -> tuple[Callable[[str], str], list[str]]:
    asked = []

    def moved(release: str) -> str:
        asked.append(release)
        if release in broken:
            raise HarnessError("no wheel")
        return f"moved by {release}" if int(release) >= first_moved else ""

    return moved, asked


@pytest.mark.parametrize(("count", "first_moved"), [(n, k) for n in range(2, 18) for k in range(1, n)])
def test_the_first_release_is_found_with_few_questions(count: int, first_moved: int) -> None:
    moved, asked = mover(first_moved)
    found = search([str(each) for each in range(count)], moved, lambda text: None)
    assert found == Found(str(first_moved - 1), str(first_moved), f"moved by {first_moved}")
    assert len(asked) == len(set(asked)) <= 1 + (count - 1).bit_length() and found.status == DIFFERS


def test_ends_that_agree_end_it_at_once() -> None:
    moved, asked = mover(99)
    found = search(["0", "1", "2", "3"], moved, lambda text: None)
    assert (found, asked, found.status) == (Found("0", "3"), ["3"], AGREES)
    assert found.sentence("this") == "No difference: JAX 0 and JAX 3 agree on this."


@pytest.mark.parametrize("broken", [b for n in range(1, 6) for b in itertools.combinations("12345", n)])
@pytest.mark.parametrize("first_moved", range(1, 7))
def test_what_cannot_be_tested_is_passed_over_and_never_blamed(broken: tuple[str, ...], first_moved: int) -> None:
    moved, asked = mover(first_moved, broken)
    found = search(list("0123456"), moved, lambda text: None)
    good = [each for each in range(7) if str(each) not in broken]
    before, after = max(e for e in good if e < first_moved), min(e for e in good if e >= first_moved)
    assert (found.before, found.after) == (str(before), str(after))
    assert set(found.skipped) == {str(each) for each in range(before + 1, after)}
    assert len(asked) == len(set(asked))
    for release in found.skipped:
        assert release in found.sentence("this")


def test_a_last_release_that_cannot_be_tested_ends_it() -> None:
    moved, _ = mover(2, ("3",))
    with pytest.raises(HarnessError, match="no wheel"):
        search(["0", "1", "2", "3"], moved, lambda text: None)


def test_an_entry_is_traced_to_its_release_and_nothing_is_run_twice(matrix) -> None:
    matrix.notebook("01_good")
    found = bisect(matrix, "01:moving")
    assert found.status == DIFFERS, found.out + found.err
    assert found.out.strip().splitlines()[-1] == (
        "JAX 0.7.1 is the first that moves 01_good moving in float64: moving was 1 and is 1.00097656 (16 floors). "
        "JAX 0.7.0 is the last that agrees."
    )
    made = {call.rpartition("/")[2] for call in matrix.uv_calls() if call.startswith("venv")}
    assert made == {"0.6.2", "0.8.0", "0.7.1", "0.7.0"}
    assert "float32" not in found.out.replace("in float32", "")
    again = bisect(matrix, "01_good:moving", "0.7.0", "0.7.1")
    assert again.status == DIFFERS and matrix.uv_calls() == [] and "running" not in again.out
    assert "JAX 0.7.1 is the first that moves 01_good moving" in again.out


def test_a_release_that_fails_between_is_passed_over_and_one_at_an_end_is_not(matrix) -> None:
    matrix.notebook("01_good", 'if release == (0, 7, 1):\n    raise ArithmeticError("no such thing")')
    found = bisect(matrix, "01:moving", "0.7.0", "0.7.2")
    assert found.status == DIFFERS
    failed = "01_good does not run under JAX 0.7.1: a cell raised: ArithmeticError: no such thing"
    assert f"JAX 0.7.1: passed over, because {failed}" in found.out
    assert "JAX 0.7.2, or one of those that could not be tested (0.7.1), is the first that moves" in found.out
    ended = bisect(matrix, "01:moving", "0.7.0", "0.7.1")
    assert ended.status == RUN_FAILED and failed in ended.err


def test_that_another_entry_moves_is_not_the_question(matrix) -> None:
    matrix.notebook("01_good")
    found = bisect(matrix, "01:halves[-1]", "0.7.0", "0.7.1", "--precision", "float32")
    assert found.status == AGREES
    assert found.out.endswith("No difference: JAX 0.7.0 and JAX 0.7.1 agree on 01_good halves[2] in float32.\n")


def test_a_probe_is_traced_without_running_a_notebook(matrix) -> None:
    matrix.notebook("01_good")
    (matrix.root / "reproduce" / "probes.py").write_text(PROBES)
    # The command asks JAX for the precision first.
    (matrix.root / "jax.py").write_text("class config:\n    update = staticmethod(lambda name, value: None)")
    found = bisect(matrix, "probe:long_sum")
    assert found.status == DIFFERS
    assert found.out.strip().endswith(
        "JAX 0.7.2 is the first that moves the probe long_sum in float64: its fingerprint was old and is new. "
        "JAX 0.7.1 is the last that agrees."
    )
    assert "running" not in found.out and bisect(matrix, "probe:exp").status == AGREES
    unknown = bisect(matrix, "probe:sum")
    assert unknown.status == CANNOT_COMPARE and "there is no probe 'sum'; there are exp, long_sum." in unknown.err


@pytest.mark.parametrize(
    ("entry", "more", "says"),
    [
        ("moving", (), "ENTRY='moving': expected NN:ENTRY, such as 01:train/loss[3], or probe:NAME."),
        (":moving", (), "expected NN:ENTRY"),
        ("01:", (), "expected NN:ENTRY"),
        ("0:moving", (), "'0' names 2 notebooks"),
        ("07:moving", (), "no notebook starts with '07'"),
        ("01:moving", ("--precision", "float16"), "PRECISION='float16': expected float32 or float64."),
    ],
)
def test_what_cannot_be_watched_is_said_before_anything_is_made(matrix, entry, more, says) -> None:
    matrix.notebook("01_good")
    matrix.notebook("02_other")
    checkout, precision = matrix.small.paths, more[1] if more else "float64"
    with pytest.raises(HarnessError, match=re.escape(says)):
        watched.watch(checkout, entry, precision, "0.6.2", environments=None)  # pyright: ignore[reportArgumentType]


RECORD = Record(header(), ENTRIES, "")


@pytest.mark.parametrize(
    ("name", "resolved"),
    [
        ("train/loss", "train/loss"),
        ("train/curve", "train/curve"),
        ("train/curve[3]", "train/curve[3]"),
        ("train/curve[-1]", "train/curve[7]"),
        ("train/curve[-8]", "train/curve[0]"),
        ("accuracy@10", "accuracy@10"),
        ("learns", "learns"),
        ("demo-01:panels[0].series[1].y[-1]", "demo-01:panels[0].series[1].y[2]"),
        ("demo-01:panels[0].series[1]", "demo-01:panels[0].series[1]"),
    ],
)
def test_entries_are_named_as_comparisons_name_them(name: str, resolved: str) -> None:
    assert watched._resolved(name, RECORD) == resolved


@pytest.mark.parametrize("name", ["train/curve[8]", "train/curve[-9]", "train/curv", "train", "accuracy", "learns[0]"])
def test_an_entry_that_is_not_logged_is_named_with_its_like(name: str) -> None:
    with pytest.raises(HarnessError, match=rf"logs no '{re.escape(name)}'; it logs .+, for example"):
        watched._resolved(name, RECORD)


@pytest.mark.parametrize(
    ("where", "name", "belongs"),
    [
        ("train/curve[3]", "train/curve", True),
        ("train/curve[3]", "train/curve[3]", True),
        ("train/curve[30]", "train/curve[3]", False),
        ("train/curve:values.length", "train/curve", True),
        ("train/curve2", "train/curve", False),
        ("demo:panels[0].y[3]", "demo:panels[0]", True),
        ("demo:panels[0].y[3]", "demo:panels[1]", False),
    ],
)
def test_a_difference_belongs_to_the_entry_that_it_names(where: str, name: str, belongs: bool) -> None:
    assert watched._belongs(where, name) is belongs


ANSWER = """\
WARNING: something about an index
jax (0.12.0.1)
Available versions: 0.12.0.1, 0.11.0, 0.10.2, 0.9.2, 0.9.0.1, 0.9.0, 0.8.3, 0.9.0rc1
  INSTALLED: 0.9.2
"""


def test_the_published_releases_between_two_are_listed_by_age(monkeypatch) -> None:
    monkeypatch.setattr(releases, "_ask_pip", lambda: ANSWER)
    assert releases.between("0.8.3", "0.10.2") == ["0.8.3", "0.9.0", "0.9.0.1", "0.9.2", "0.10.2"]
    assert releases.between("0.10.2", "0.12.0.1") == ["0.10.2", "0.11.0", "0.12.0.1"]


@pytest.mark.parametrize(
    ("first", "last", "says"),
    [
        ("0.9.2", "0.9.2", "FROM=0.9.2 TO=0.9.2: expected an older release first"),
        ("0.10.2", "0.9.2", "expected an older release first"),
        ("0.8.3", "0.9.9", "JAX 0.9.9 is not among the published releases; the newest are 0.9.0.1, 0.9.2, 0.10.2"),
        ("0.8.1", "0.9.2", "JAX 0.8.1 is not among the published"),
        ("0.8", "0.9.2", "'0.8' is no JAX release"),
    ],
)
def test_ends_that_cannot_be_walked_between_are_named(monkeypatch, first: str, last: str, says: str) -> None:
    monkeypatch.setattr(releases, "_ask_pip", lambda: ANSWER)
    with pytest.raises(HarnessError, match=re.escape(says)):
        releases.between(first, last)


def test_without_an_answer_nothing_is_published() -> None:
    assert releases.parse("") == releases.parse("ERROR: No matching distribution found for jax") == set()


def test_what_keeps_pip_from_answering_is_said(monkeypatch) -> None:
    asked = []

    def run(command: list[str], **options) -> subprocess.CompletedProcess[str]:
        asked.extend(command)
        return subprocess.CompletedProcess(command, 1, "", "WARNING: retrying\nERROR: no network\n")

    monkeypatch.setattr(subprocess, "run", run)
    with pytest.raises(HarnessError, match=r"it said: ERROR: no network\. Check that .* has pip and the network"):
        releases.between("0.8.3", "0.9.2")
    assert asked == [sys.executable, "-m", "pip", "index", "versions", "jax", "--ignore-requires-python"]


def test_a_run_in_no_known_precision_is_refused(matrix) -> None:
    matrix.notebook("01_good")
    done = matrix.small.here("run", "--precision", "float16")
    assert (
        done.status == CANNOT_COMPARE
        and "--precision 'float16': expected float32 or float64. Nothing was run." in done.err
    )
    assert not (matrix.root / "build" / "runs").exists()
