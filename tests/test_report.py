"""What a person and a machine are told: the row, the details, the closing sentence and the exit status."""

import ast
import io
import json
import signal
import sys
from pathlib import Path

import pytest
from builders import ENTRIES, REPOSITORY, STEM, Demo, changed, draw_once, make_demo, record
from rich.console import Console

from reproduce import __main__ as command_line
from reproduce import answers, figures, report, spoken
from reproduce.checkout import Checkout
from reproduce.compare import compare
from reproduce.errors import AGREES, CANNOT_COMPARE, DIFFERS, RUN_FAILED, HarnessError, RunFailed
from reproduce.execute import FINISHED, Outcome
from reproduce.records import Claim, Metric, Text
from reproduce.results import NotebookCheck, RunCheck

REFERENCE = "jax-0.0.0_cpu"
IDENTICAL = RunCheck(comparison=compare(record(*ENTRIES), record(*ENTRIES)))
NOISY = RunCheck(
    comparison=compare(
        record(Metric("a", 1.0), Claim("c", True, 1.0, "b")),
        record(Metric("a", 1.5), Claim("c", True, 1.0, "b")),
        {"a": {"value": [0.25]}},
    )
)
MARKUP = "[red]x[/] [/nope] [bold :x: \\[a] \\"


@pytest.fixture(autouse=True)
def drawn_once(monkeypatch) -> None:
    """Every test looks at the same figure; that drawing it again gives the same bytes is shown elsewhere."""
    monkeypatch.setattr(figures, "to_svg", draw_once)


def differing(count: int = 1) -> RunCheck:
    """A run in which the first `count` of twelve numbers are wrong."""
    expected = [Metric(f"number_{n}", 0.5) for n in range(12)]
    found = [Metric(f"number_{n}", 0.625 if n < count else 0.5) for n in range(12)]
    return RunCheck(comparison=compare(record(*expected), record(*found), {"number_0": {"value": [0.0025]}}))


def notebook(
    one: RunCheck, other: RunCheck = IDENTICAL, problems: tuple[str, ...] = (), stem: str = STEM
) -> NotebookCheck:
    return NotebookCheck(stem, {"float32": one, "float64": other}, list(problems))


def said(*checks: NotebookCheck, texts: tuple[str, ...] = (), everything: bool = False) -> tuple[str, int]:
    """What stands on the terminal, and the status."""
    console = Console(file=io.StringIO(), width=400, soft_wrap=True, emoji=False)
    status = report.show_checks(console, list(checks), list(texts), REFERENCE, everything=everything)
    assert isinstance(console.file, io.StringIO)
    text = console.file.getvalue()
    assert "Traceback" not in text
    answer = json.loads(answers.as_json(list(checks), list(texts), REFERENCE), parse_constant=pytest.fail)
    assert answer["status"] == status and answer["sentence"] == text.strip().splitlines()[-1]
    return text, status


def row(text: str, stem: str = STEM) -> list[str]:
    """The cells of a notebook's row."""
    (line,) = (
        line for line in text.splitlines() if line.startswith(f"{stem} ") and not line.startswith(f"{stem} float")
    )
    return [cell.strip() for cell in line.split("  ") if cell.strip()]


def test_agrees():
    text, status = said(notebook(IDENTICAL), notebook(NOISY, stem="02_other"))
    assert status == AGREES
    assert row(text) == [STEM, "32 numbers identical", "32 numbers identical", "4 hold", "agrees"]
    noisy = row(text, "02_other")
    assert noisy == [
        "02_other",
        "1 numbers within noise, largest 2.0 floors",
        "32 numbers identical",
        "3 hold",
        "agrees",
    ]
    assert text.splitlines()[-1] == f"Agrees: all 97 numbers of 2 notebooks agree with the reference {REFERENCE}."


def test_differs():
    text, status = said(notebook(differing()))
    assert status == DIFFERS
    assert row(text) == [STEM, "drift", "32 numbers identical", "2 hold", "differs"]
    (line,) = (line for line in text.splitlines() if "number_0" in line and "0.5" in line)
    assert line.split() == ["number_0", "drift", "0.5", "0.625", "50", "floors"]
    assert f"{STEM} float32: 1 difference beyond noise" in text
    assert text.splitlines()[-1] == f"Differs from the reference {REFERENCE} in 1 entry: {STEM}."


def test_numbers_that_differ_come_with_a_next_step():
    text, _ = said(notebook(differing()))
    nb = STEM.partition("_")[0]
    [line] = [line for line in text.splitlines() if line.startswith("next step: begin with ")]
    assert f"make record NB={nb} REPLACE=1. If JAX changed: make bisect ENTRY='{nb}:" in line
    assert "next step" not in said(notebook(IDENTICAL))[0]


def test_many_differences_are_cut_short_and_counted():
    text, _ = said(notebook(differing(12)))
    assert "12 differences beyond noise" in text and "… 4 more; --all shows them" in text
    assert ("number_7" in text, "number_8" in text) == (True, False)
    text, _ = said(notebook(differing(12)), everything=True)
    assert "number_11" in text and "--all" not in text
    assert "2.5e+14" not in text and "ulp, no floor" in text


def test_a_broken_and_a_missing_claim():
    expected = [Claim("a", True, 1.0, "b"), Claim("c", True, 1.0, "d"), Claim("e", True, 1.0, "f")]
    found = [Claim("a", False, -1.0, "b"), Claim("c", True, 1.0, "d")]
    run = RunCheck(comparison=compare(record(*expected), record(*found)))
    text, status = said(NotebookCheck(STEM, {"float32": run}))
    assert status == DIFFERS
    assert "1 of 3 hold" in text and "claim broken" in text and "holds (margin 1.0; b)" in text
    assert "broken (margin -1.0; b)" in text


def test_stale():
    stale = compare(record(*ENTRIES), record(*ENTRIES, parameters={"RATE": 0.25, "STEPS": 3}))
    text, status = said(notebook(RunCheck(comparison=stale)))
    assert status == DIFFERS
    assert row(text)[1] == "stale, 32 numbers identical"
    assert "stale: parameter RATE: expected 0.5, found 0.25. If meant: make record REPLACE=1" in text
    assert text.splitlines()[-1] == (f"Differs from the reference {REFERENCE} in what they were made from: {STEM}.")


def endings() -> set[str]:
    """Every way a run can end, as the modules that say so spell it."""
    found = set()
    for name in ("execute", "attempt", "checking"):
        tree = ast.parse((REPOSITORY / "reproduce" / f"{name}.py").read_text(encoding="utf-8"))
        for node in ast.walk(tree):
            if isinstance(node, ast.Call) and ast.unparse(node.func) in ("Outcome", "progress.outcome"):
                found |= {node.args[0].value} if isinstance(node.args[0], ast.Constant) else set()
    return found


def test_every_ending_has_a_next_step():
    assert endings() == set(report.NEXT_STEP) and FINISHED not in endings() and len(endings()) >= 10


@pytest.mark.parametrize("ended", [*sorted(report.NEXT_STEP), "something newer"])
def test_incomplete(ended):
    run = RunCheck(incomplete=Outcome(ended, "why it ended.", 4, "1 / 0"))
    text, status = said(notebook(run))
    assert status == RUN_FAILED
    assert row(text) == [STEM, f"incomplete: {ended}", "32 numbers identical", "2 hold", "run failed"]
    step = report.NEXT_STEP.get(ended, "Run again.")
    assert f"{STEM} float32: incomplete: {ended}: why it ended. {step}" in text
    assert text.splitlines()[-1] == (
        f"A run failed, so nothing can be said of all of {STEM}; the reference {REFERENCE} is unchanged."
    )


@pytest.mark.parametrize(
    "why",
    ["not run yet; make reproduce runs it", "a.jsonl: cannot be read", "a.noise.json: measured on another record"],
)
def test_what_cannot_be_compared(why):
    text, status = said(notebook(RunCheck(cannot=why)))
    assert status == CANNOT_COMPARE
    assert row(text) == [STEM, "not comparable", "32 numbers identical", "2 hold", "cannot compare"]
    assert f"{STEM} float32: cannot compare: {why}" in text
    assert text.splitlines()[-1] == (
        f"Cannot compare {STEM} with the reference {REFERENCE}; see above for the next step."
    )


def test_nothing_to_count():
    text, status = said(notebook(RunCheck(cannot="why"), RunCheck(cannot="why")))
    assert status == CANNOT_COMPARE and row(text)[3] == "-"


def test_two_kinds_of_run():
    other = RunCheck(comparison=compare(record(), record(precision="float32")))
    text, status = said(notebook(other))
    assert status == CANNOT_COMPARE
    assert "not comparable: precision: expected float64, found float32" in text


def test_files_out_of_step():
    text, status = said(notebook(IDENTICAL, problems=("01_demo.ipynb: out of step with 01_demo.py",)))
    assert status == DIFFERS and row(text)[-1] == "differs"
    assert "out of step: 01_demo.ipynb" in text
    assert text.splitlines()[-1] == f"Differs from the reference {REFERENCE} in the files listed: {STEM}."


def test_a_wrong_number_in_the_readme():
    text, status = said(notebook(IDENTICAL), texts=("README.md: train/loss: the text says 0.5",))
    assert status == DIFFERS and row(text)[-1] == "agrees"
    assert "train/loss: the text says 0.5" in text
    assert text.splitlines()[-1] == f"Differs from the reference {REFERENCE} in the files listed: README.md."


@pytest.mark.parametrize(
    ("runs", "status"),
    [
        ((IDENTICAL, differing()), DIFFERS),
        ((differing(), RunCheck(cannot="why")), CANNOT_COMPARE),
        ((RunCheck(cannot="why"), RunCheck(incomplete=Outcome("interrupted"))), RUN_FAILED),
    ],
)
def test_the_worst_status_counts(runs, status):
    assert said(notebook(runs[0]), notebook(runs[1], stem="02_other"))[1] == status
    assert said(notebook(*runs))[1] == status


def test_markup_is_shown_and_never_obeyed():
    texts = compare(record(Text("a", "before")), record(Text("a", MARKUP), parameters={MARKUP: MARKUP}))
    checks = [
        NotebookCheck(MARKUP, {"float32": RunCheck(comparison=texts)}, [MARKUP]),
        NotebookCheck(MARKUP, {"float32": RunCheck(cannot=MARKUP)}),
        NotebookCheck(MARKUP, {"float32": RunCheck(incomplete=Outcome(MARKUP, MARKUP))}),
        NotebookCheck(MARKUP, {"float32": RunCheck(comparison=compare(record(), record(notebook="other")))}),
    ]
    text, _ = said(*checks, texts=(MARKUP,))
    # Name in four rows and five headings, then each place that repeats it; no place may lose a character.
    assert text.count("[red]x[/] [/nope] [bold :x: \\[a]") >= 18
    console = Console(file=io.StringIO(), width=400, soft_wrap=True, emoji=False)
    report.show_comparison(console, MARKUP, RunCheck(texts), everything=True)
    report.show_failure(console, MARKUP, Outcome(MARKUP, MARKUP, 3, f"{MARKUP}\n" * 9), MARKUP)
    assert isinstance(console.file, io.StringIO)
    assert console.file.getvalue().count("[red]x[/] [/nope] [bold :x: \\[a]") >= 14


def test_a_failure_shows_cell_code_and_next_step():
    console = Console(file=io.StringIO(), width=200)
    code = "\n".join(f"line_{n}" for n in range(9))
    report.show_failure(console, "01_demo float32", Outcome("a cell raised", "ValueError: why", 7, code), "build/a")
    assert isinstance(console.file, io.StringIO)
    text = console.file.getvalue()
    assert "01_demo float32: a cell raised in cell 7: ValueError: why" in text
    assert "line_5" in text and "line_6" not in text and "… 3 more lines" in text
    assert "build/a (executed.ipynb, stderr.txt, partial.jsonl)" in text
    assert report.NEXT_STEP["a cell raised"] in text and "Traceback" not in text


def test_json_holds_every_difference():
    answer = json.loads(answers.as_json([notebook(differing(12), NOISY)], [], REFERENCE))
    run = answer["notebooks"][0]["runs"]["float32"]
    assert len(run["differences"]) == 12
    assert run["differences"][0] | {"ulps": None} == {
        "where": "number_0",
        "verdict": "drift",
        "expected": 0.5,
        "found": 0.625,
        "floors": 50.0,
        "ulps": None,
    }
    assert run["entries"]["number_11"] == "drift" and run["verdict"] == "drift" and run["agrees"] is False
    noisy = answer["notebooks"][0]["runs"]["float64"]
    assert (noisy["verdict"], noisy["largest"], noisy["agrees"]) == ("within noise", 2.0, True)
    assert answer["allowed"] == {"floors": 10, "ulps": 4}


def test_json_never_calls_identical_what_was_not_compared():
    answer = answers.comparison_json(RunCheck(compare(record(), record(notebook="other"))))
    assert answer["verdict"] == "not comparable" and answer["agrees"] is False


def test_json_says_why_there_is_no_comparison():
    checks = [notebook(RunCheck(cannot="why"), RunCheck(incomplete=Outcome("interrupted", "how", 3)))]
    runs = json.loads(answers.as_json(checks, ["text"], REFERENCE))["notebooks"][0]["runs"]
    assert runs["float32"] == {"status": CANNOT_COMPARE, "cannot": "why"}
    assert runs["float64"]["incomplete"]["cell"] == 3


# The command line, in this process


@pytest.fixture(scope="module")
def pristine(tmp_path_factory) -> Demo:
    return make_demo(tmp_path_factory.mktemp("demo"))


@pytest.fixture
def call(monkeypatch, capsys, tmp_path):
    """Calls the command line; gives its status and what it wrote to standard output and standard error."""
    # As it is set for the whole process, and the tests are not the command line.
    monkeypatch.setattr(signal, "signal", lambda *_: None)

    def run(*arguments: str, root: Path = tmp_path) -> tuple[int, str, str]:
        monkeypatch.setenv("REPRODUCE_ROOT", str(root))
        monkeypatch.setattr(sys, "argv", ["reproduce", *arguments])
        with pytest.raises(SystemExit) as ended:
            command_line.main()
        out, err = capsys.readouterr()
        assert "Traceback" not in out + err
        return int(ended.value.code or 0), out, err

    return run


def test_check_in_words_and_in_json(call, pristine):
    root = pristine.checkout.root
    status, out, err = call("check", root=root)
    assert (status, err) == (AGREES, "")
    assert out.splitlines()[-1] == f"Agrees: all 64 numbers of 1 notebook agree with the reference {REFERENCE}."
    status, out, err = call("check", "--json", root=root)
    assert (status, err) == (AGREES, "") and json.loads(out)["status"] == AGREES


def test_check_that_differs(call, tmp_path):
    demo = make_demo(tmp_path)
    demo.put_run("float64", (changed(ENTRIES[1], value=5), *ENTRIES[2:]))
    status, out, _ = call("check")
    assert status == DIFFERS and "in 2 entries: 01_demo." in out
    assert call("check", "--json")[0] == DIFFERS
    (demo.checkout.root / "README.md").write_text("0.5<!-- record: 01:train/loss -->")
    demo.put_run("float64")
    assert call("check")[0] == call("check", "--json")[0] == DIFFERS


def test_compare_two_records(call, pristine):
    a, b = (str(pristine.recorded.record(precision)) for precision in ("float32", "float64"))
    status, out, _ = call("compare", a, a)
    assert status == AGREES and out.splitlines()[-1].startswith("Agrees: all 32 numbers of 1 record(s)")
    status, out, _ = call("compare", a, b)
    assert status == CANNOT_COMPARE and out.splitlines()[-1].startswith("Cannot compare")
    status, out, _ = call("compare", a, b, "--json")
    assert status == CANNOT_COMPARE and json.loads(out)[f"{Path(a).name} and {Path(b).name}"]["agrees"] is False


def test_compare_names_are_no_markup(call, pristine, tmp_path):
    strange = tmp_path / "a[b] [red] :x:.jsonl"
    strange.write_bytes(pristine.recorded.record("float32").read_bytes())
    status, out, _ = call("compare", str(strange), str(strange))
    assert status == AGREES and out.startswith(f"{strange.name} and {strange.name}: 32 numbers identical")


def test_show_prints_the_record_as_it_is(call, pristine, tmp_path):
    from reproduce import records
    from reproduce.plain_log import render

    odd = record(Text("a", f"{MARKUP} :heart: {'long ' * 60}"), precision="float32")
    path = tmp_path / "a.jsonl"
    path.write_bytes(records.encode(odd.header, list(odd.entries)))
    assert call("show", str(path))[:2] == (AGREES, render(odd))
    status, out, _ = call("show", "--nb", "01", "--reference", root=pristine.checkout.root)
    assert status == AGREES and "recorded 2030-01-02" in out
    assert "".join(out.splitlines(keepends=True)[2:]) in pristine.recorded.log.read_text(encoding="utf-8")


def test_files_that_are_in_step_and_out_of_step(call, tmp_path):
    demo = make_demo(tmp_path)
    assert call("figures", "--check")[:2] == (AGREES, "figures: up to date.\n")
    assert call("notebooks", "--check")[:2] == (AGREES, "notebooks: up to date.\n")
    for command, path in (
        ("figures", demo.checkout.figures / "demo-01.svg"),
        ("notebooks", demo.source_file.with_suffix(".ipynb")),
    ):
        before = path.read_bytes()
        path.write_bytes(b"changed")
        status, out, _ = call(command, "--check")
        assert status == DIFFERS and path.name in out and f"make {command} makes them again" in out
        assert path.read_bytes() == b"changed"
        assert call(command)[0] == AGREES and path.read_bytes() == before


@pytest.mark.parametrize(
    ("arguments", "status", "words"),
    [
        (("check",), CANNOT_COMPARE, "REFERENCE: missing"),
        (("compare", "absent", "absent"), CANNOT_COMPARE, "there is no such file"),
        (("compare", "absent"), CANNOT_COMPARE, "Missing argument"),
        (("show", "absent.jsonl"), CANNOT_COMPARE, "cannot be read"),
        (("show",), CANNOT_COMPARE, "no notebook starts with"),
        (("nonsense",), CANNOT_COMPARE, "nonsense"),
        (("check", "--nonsense"), CANNOT_COMPARE, "--nonsense"),
        (("run", "--jobs", "0"), CANNOT_COMPARE, "--jobs"),
    ],
)
def test_every_error_is_a_sentence(call, arguments, status, words):
    found, _, err = call(*arguments)
    assert found == status and words in err


def test_without_a_command_there_is_help(call):
    status, out, err = call()
    assert status == CANNOT_COMPARE
    assert all(f"  {command} " in out + err for command in ("run", "check", "record", "compare", "show", "figures"))


@pytest.mark.parametrize(
    ("error", "status", "words"),
    [
        (HarnessError("a [/b] c"), CANNOT_COMPARE, "error: a [/b] c"),
        (RunFailed("a [/b] c"), RUN_FAILED, "error: a [/b] c"),
        (KeyboardInterrupt(), RUN_FAILED, "interrupted: every process was ended; no record was changed"),
        (OSError(28, "No space left", "/a[/b]"), RUN_FAILED, "the disk refused (/a[/b]): No space left"),
        (ZeroDivisionError("a [/b] c"), RUN_FAILED, "the harness itself failed: ZeroDivisionError: a [/b] c"),
    ],
)
def test_every_end_is_a_sentence(call, monkeypatch, tmp_path, error, status, words):
    def refuse(*_, **__):
        raise error

    monkeypatch.setattr(Checkout, "reference_name", refuse)
    found, out, err = call("check")
    assert (found, out) == (status, "") and words in err
    # What is unforeseen can be reported; its traceback is in a file.
    assert (tmp_path / "build" / "crash.txt").exists() == isinstance(error, ZeroDivisionError)


def test_a_termination_is_an_interruption(monkeypatch):
    handlers = {}
    monkeypatch.setattr(signal, "signal", handlers.__setitem__)
    with pytest.raises(SystemExit):
        spoken.run(lambda **_: 0, Path())  # pyright: ignore[reportArgumentType]
    with pytest.raises(KeyboardInterrupt):
        handlers[signal.SIGTERM]()
