"""Everything `check` holds against the committed reference: runs, prose, learner's copies and figures."""

import contextlib
from pathlib import Path

from . import environment, figures, freshness, noise, notebooks, quoted, records
from .checkout import Checkout, RecordedRun, RunFolder
from .environment import Environment
from .errors import HarnessError
from .execute import FINISHED, Outcome
from .results import NotebookCheck, RunCheck, hold


def check_notebook(checkout: Checkout, path: Path) -> NotebookCheck:
    """Check one notebook against the reference."""
    try:
        source = notebooks.read(path)
    except HarnessError as error:
        broken = RunCheck(incomplete=Outcome("the source cannot be run", str(error)))
        return NotebookCheck(path.stem, dict.fromkeys(records.PRECISIONS, broken))
    runs = {precision: check_run(checkout, source, precision) for precision in records.PRECISIONS}
    return NotebookCheck(source.stem, runs, artefact_problems(checkout, source))


def check_run(checkout: Checkout, source: notebooks.Source, precision: str) -> RunCheck:
    """Check one run against the reference, within the reference's floors."""
    folder = checkout.run(source.stem, precision)
    status = freshness.read_status(folder)
    if status is None:
        return RunCheck(cannot="not run yet; make reproduce runs it")
    if status.outcome.ended != FINISHED:
        return RunCheck(incomplete=status.outcome)
    if freshness.file_digest(folder.record) != status.record_sha256:
        return RunCheck(cannot=f"{folder.record}: changed or removed after the run; make reproduce runs it again")
    try:
        found = records.read(folder.record)
        if found.header.source_sha256 != source.sha256:
            return RunCheck(cannot="the run is older than the notebook; make reproduce runs it again")
        if status.parts.get("package code") != freshness.code_digest(checkout):
            return RunCheck(cannot="the run is older than the code of the packages; make reproduce runs it again")
        reference = checkout.reference(source.stem)
        expected = records.read(reference.record(precision))
        measured_noise = noise.read(reference.noise)
        measured = measured_noise.precisions.get(precision)
    except HarnessError as error:
        return RunCheck(cannot=str(error))
    if measured is None or measured.record_sha256 != expected.sha256:
        return RunCheck(cannot=f"{reference.noise}: measured on another record than {reference.record(precision).name}")
    made_with = _environments(reference, folder, precision)
    return hold(expected, found, measured.floors, made_with, measured_noise.stream_free)


def _environments(
    reference: RecordedRun, run: RunFolder, precision: str
) -> tuple[Environment | None, Environment | None]:
    """What both were made with; that a file is damaged is told elsewhere, and leaves a cause unknown."""
    recorded = found = None
    with contextlib.suppress(HarnessError):
        recorded = environment.read_recorded(reference.folder)[precision]
    with contextlib.suppress(HarnessError):
        found = environment.read(run.environment)
    return recorded, found


def artefact_problems(checkout: Checkout, source: notebooks.Source) -> list[str]:
    """What in the committed files is out of step with the source and the reference record."""
    problems = _learner_copy(source)
    try:
        reference = checkout.reference(source.stem)
        recorded = [records.read(reference.record(precision)) for precision in records.PRECISIONS]
    except HarnessError:
        # The run's own verdict already says so.
        return problems
    number = source.stem[:2]
    prose = "\n\n".join(cell.source for cell in source.notebook.cells if cell.cell_type == "markdown")
    problems += [f"{source.path.name}: {each}" for each in quoted.problems(prose, {number: recorded}, number)]
    return problems + _figure_files(checkout, recorded[0])


def text_problems(checkout: Checkout) -> list[str]:
    """Wrong quotations in the README, whose ties name the notebook."""
    by_number = {}
    for path in checkout.sources():
        try:
            reference = checkout.reference(path.stem)
            by_number[path.stem[:2]] = [records.read(reference.record(p)) for p in records.PRECISIONS]
        except HarnessError:
            continue
    readme = checkout.root / "README.md"
    text = readme.read_text(encoding="utf-8", errors="replace") if readme.exists() else ""
    return [f"README.md: {each}" for each in quoted.problems(text, by_number, strict=False)]


def _learner_copy(source: notebooks.Source) -> list[str]:
    copy = source.path.with_suffix(".ipynb")
    try:
        made = notebooks.to_bytes(notebooks.learner(source))
    except HarnessError as error:
        return [str(error)]
    if not copy.exists() or copy.read_bytes() != made:
        return [f"{copy.name}: out of step with {source.path.name}; make notebooks makes it again"]
    return []


def _figure_files(checkout: Checkout, reference: records.Record) -> list[str]:
    try:
        recorded_with = environment.read_recorded(checkout.recorded_runs / checkout.reference_name())
    except HarnessError as error:
        return [str(error)]
    if recorded_with["float32"].versions.get("matplotlib") != environment.versions().get("matplotlib"):
        # SVG bytes are a property of one matplotlib release; the data has been compared anyway.
        return []
    problems = []
    for name, data in reference.figures.items():
        path = checkout.figures / f"{name}.svg"
        if not path.exists() or path.read_bytes() != figures.to_svg(data):
            problems.append(f"figures/{name}.svg: not what the reference record draws; make figures draws it again")
    return problems
