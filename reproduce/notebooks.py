"""notebooks/NN_topic.py to the learner's copy and to the solved notebook that the harness runs.

The percent source is what people edit and review. The learner's `.ipynb` is generated from it: solutions become a
stub and stand folded below. The solved notebook keeps them and is built under `build/` for each run.
"""

import ast
import copy
import hashlib
import re
from dataclasses import dataclass
from pathlib import Path

import jupytext
import nbformat
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook

from .errors import RunFailed

KERNEL = "python3"
BEGIN, END = "### BEGIN SOLUTION", "### END SOLUTION"
SOLUTION_PLACE = "<!-- SOLUTION -->"
# The harness sets these two itself; they are not part of what a record calls its parameters.
HARNESS_PARAMETERS = ("PRECISION", "LOG_PATH")
STUB = 'raise NotImplementedError("write this part, then run the cell again")'


class NotebookError(RunFailed):
    """A notebook source that breaks a rule of the series; the message names file and rule."""


@dataclass(frozen=True)
class Source:
    """A notebook source, read once.

    Attributes:
        stem: file name without suffix.
        notebook: cells as nbformat has them, ids fixed by content.
        parameters: values of the parameters cell.
    """

    stem: str
    path: Path
    notebook: nbformat.NotebookNode
    parameters: dict[str, bool | int | float | str]

    @property
    def sha256(self) -> str:
        """Digest of the code cells. Prose is left out: correcting a word cannot move a number."""
        code = [cell.source for cell in self.notebook.cells if cell.cell_type == "code"]
        return hashlib.sha256("\0".join(code).encode()).hexdigest()


def read(path: Path) -> Source:
    """Read a percent source.

    Raises:
        NotebookError: it is no notebook, names another kernel than python3, or its parameters cell is not one cell of
            literals.
    """
    try:
        text = path.read_text(encoding="utf-8")
    except UnicodeDecodeError:
        raise NotebookError(f"{path}: not UTF-8 text. Save it as UTF-8.") from None
    try:
        notebook = jupytext.reads(text, fmt="py:percent")
        named = notebook.metadata.get("kernelspec", {}).get("name")
    except Exception as error:
        # A damaged head or cell marker gives errors of many types.
        what = f"{error}".splitlines()[0]
        raise NotebookError(
            f"{path}: not a notebook in percent format: {what}. Compare its head and its cell markers with those of "
            "another notebook."
        ) from None
    if named != KERNEL:
        raise NotebookError(
            f"{path}: names the kernel {named!r}, expected {KERNEL!r}: the series runs in the environment it is "
            f"installed in. Set `name: {KERNEL}` in the kernelspec at the head of the file."
        )
    cells = _with_ids([_clean(cell) for cell in notebook.cells])
    built = new_notebook(cells=cells, metadata={"kernelspec": dict(notebook.metadata.kernelspec)})
    return Source(path.stem, path, built, _parameters(cells, path))


def _clean(cell):
    make = new_code_cell if cell.cell_type == "code" else new_markdown_cell
    tags = cell.metadata.get("tags")
    return make(cell.source, metadata={"tags": list(tags)} if tags else {})


def _with_ids(cells: list) -> list:
    """Ids from content: an inserted cell leaves the ids of all others alone."""
    seen: dict[str, int] = {}
    for cell in cells:
        digest = hashlib.sha256(f"{cell.cell_type}\0{cell.source}".encode()).hexdigest()[:12]
        seen[digest] = seen.get(digest, 0) + 1
        cell.id = digest if seen[digest] == 1 else f"{digest}-{seen[digest]}"
    return cells


def _parameters(cells: list, path: Path) -> dict:
    tagged = [cell for cell in cells if "parameters" in cell.metadata.get("tags", [])]
    if len(tagged) != 1:
        raise NotebookError(f"{path}: {len(tagged)} cells are tagged `parameters`, expected one.")
    try:
        statements = ast.parse(tagged[0].source).body
    except SyntaxError as error:
        raise NotebookError(f"{path}: the parameters cell is not Python: {error.msg}, line {error.lineno}.") from None
    values = {}
    for statement in statements:
        match statement:
            case ast.Assign(targets=[ast.Name(id=name)], value=value):
                values[name] = _literal(value, name, path)
            case _:
                raise NotebookError(f"{path}: the parameters cell may hold assignments of literals only.")
    missing = [name for name in HARNESS_PARAMETERS if name not in values]
    if missing:
        raise NotebookError(f"{path}: the parameters cell lacks {', '.join(missing)}.")
    return values


def _literal(expression: ast.expr, name: str, path: Path) -> bool | int | float | str:
    try:
        value = ast.literal_eval(expression)
    except (ValueError, TypeError):
        raise NotebookError(
            f"{path}: the parameter {name} is computed; a parameter must be a literal. Move the computation to "
            "the next cell, so that a parameter set from outside reaches it."
        ) from None
    if not isinstance(value, bool | int | float | str):
        raise NotebookError(
            f"{path}: the parameter {name} is a {type(value).__name__}; expected a number, a string, True or False."
        )
    return value


def solved(source: Source) -> nbformat.NotebookNode:
    """The notebook with its solutions in place, as it is run."""
    cells = [copy.deepcopy(cell) for cell in source.notebook.cells if cell.source.strip() != SOLUTION_PLACE]
    return new_notebook(cells=cells, metadata=source.notebook.metadata)


def learner(source: Source) -> nbformat.NotebookNode:
    """The notebook as a learner gets it: stubs in the exercises, each solution folded where the source places it."""
    cells, waiting = [], []
    for cell in source.notebook.cells:
        if cell.cell_type == "code" and (BEGIN in cell.source or END in cell.source):
            stub, solution = _split(cell.source, source.path)
            waiting.append(solution)
            cells.append(new_code_cell(stub, metadata=dict(cell.metadata), id=cell.id))
        elif cell.source.strip() == SOLUTION_PLACE:
            if not waiting:
                raise NotebookError(f"{source.path}: {SOLUTION_PLACE} with no exercise before it.")
            cells.append(new_markdown_cell(_folded(waiting.pop(0)), id=cell.id))
        else:
            cells.append(copy.deepcopy(cell))
    if waiting:
        raise NotebookError(
            f"{source.path}: a solution is never shown; put a {SOLUTION_PLACE} cell below its exercise."
        )
    return new_notebook(cells=_with_ids(cells), metadata=source.notebook.metadata)


def _split(code: str, path: Path) -> tuple[str, str]:
    """An exercise cell as stub and as solution."""
    pattern = re.compile(rf"^([ \t]*){BEGIN}\n(.*?)^[ \t]*{END}$", re.MULTILINE | re.DOTALL)
    # Outside a function there is an answer to be typed in, `answer = ...`; the solution below it goes without a trace.
    stub, count = pattern.subn(lambda match: match[1] and f"{match[1]}{STUB}", code)
    stub = stub.rstrip()
    if {code.count(BEGIN), code.count(END)} != {count}:
        raise NotebookError(f"{path}: {BEGIN} and {END} must stand in pairs, each on a line of its own.")
    # What waits for an answer goes too: the solution says it again with the answer in place.
    markers = re.compile(rf"^(?:[ \t]*(?:{BEGIN}|{END}|# TODO.*)|\w+ = \.\.\.(?:[ \t]+#.*)?)\n?", re.MULTILINE)
    return stub, markers.sub("", code).strip()


def _folded(solution: str) -> str:
    return f"<details><summary>Solution</summary>\n\n```python\n{solution}\n```\n\n</details>"


def to_bytes(notebook: nbformat.NotebookNode) -> bytes:
    """The notebook file, the same bytes for the same cells."""
    nbformat.validate(notebook)
    return (nbformat.writes(notebook) + "\n").encode()
