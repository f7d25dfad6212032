"""Sources of notebooks, what is made of them, and the rules of the series, which every source in `notebooks/` obeys."""

import ast
import builtins
import copy
import functools
import inspect
import re
from pathlib import Path
from unittest.mock import MagicMock

import nbformat
import pytest
from builders import REPOSITORY, SOURCE

from reproduce import notebooks
from reproduce.notebooks import NotebookError, Source

NAMES = (
    "01_paired_views",
    "02_nt_xent",
    "03_clip",
    "04_image_views",
    "05_held_out_evaluation",
    "06_false_negatives",
    "07_scaling",
)
SERIES = sorted((REPOSITORY / "notebooks").glob("*.py"))
series = pytest.mark.parametrize("path", SERIES, ids=lambda path: path.stem)


@functools.cache
def of_the_series(path: Path) -> Source:
    """A source of the series; nothing here changes it."""
    return notebooks.read(path)


def read(folder: Path, text: str, stem: str = "01_demo") -> Source:
    path = folder / f"{stem}.py"
    path.write_text(text, encoding="utf-8")
    return notebooks.read(path)


def replaced(old: str, new: str, text: str = SOURCE) -> str:
    assert text.count(old) == 1, old
    return text.replace(old, new)


def code_of(notebook) -> list[str]:
    return [cell.source for cell in notebook.cells if cell.cell_type == "code"]


def prose_of(notebook) -> list[str]:
    return [cell.source for cell in notebook.cells if cell.cell_type == "markdown"]


# Reading


def test_parameters_are_those_of_the_cell(tmp_path):
    source = read(tmp_path, replaced("STEPS = 3\n", "STEPS = -3\nNAME = 'a'\nFAST = True\n"))
    assert source.parameters == {
        "PRECISION": "float32",
        "LOG_PATH": "",
        "RATE": 0.5,
        "STEPS": -3,
        "NAME": "a",
        "FAST": True,
    }


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("STEPS = 3", "STEPS = 2 * 3", "STEPS is computed"),
        ("STEPS = 3", "STEPS = RATE", "STEPS is computed"),
        ("STEPS = 3", "STEPS = {[]: 1}", "STEPS is computed"),
        ("STEPS = 3", "STEPS = [3]", "STEPS is a list"),
        ("STEPS = 3", "STEPS = None", "STEPS is a NoneType"),
        ("STEPS = 3", "STEPS = OTHER = 3", "assignments of literals only"),
        ("STEPS = 3", "STEPS, OTHER = 3, 4", "assignments of literals only"),
        ("STEPS = 3", "STEPS: int = 3", "assignments of literals only"),
        ("STEPS = 3", "STEPS += 3", "assignments of literals only"),
        ("STEPS = 3", "import jax", "assignments of literals only"),
        ("STEPS = 3", "print(3)", "assignments of literals only"),
        ("STEPS = 3", "STEPS = = 3", "not Python: invalid syntax, line 4"),
        ('LOG_PATH = ""\n', "", "lacks LOG_PATH"),
        ('PRECISION = "float32"\n', "", "lacks PRECISION"),
        ('# %% tags=["parameters"]', "# %%", "0 cells are tagged"),
        ('tags=["exercise"]', 'tags=["parameters"]', "2 cells are tagged"),
        ("    name: python3", "    name: conda-env-me", "names the kernel 'conda-env-me', expected 'python3'"),
        ("#   kernelspec:\n", "#   other:\n", "names the kernel None"),
    ],
)
def test_sources_that_break_a_rule(tmp_path, old, new, said):
    with pytest.raises(NotebookError, match=re.escape(said)) as caught:
        read(tmp_path, replaced(old, new))
    assert "01_demo.py" in str(caught.value)


@pytest.mark.parametrize("content", [b"", b"\xff\xfe\x00", b"# ---\n# jupyter: [:\n# ---\n", b"print(1)\n"])
def test_files_that_are_no_source(tmp_path, content):
    path = tmp_path / "01_demo.py"
    path.write_bytes(content)
    with pytest.raises(NotebookError, match=r"01_demo\.py"):
        notebooks.read(path)


def test_only_code_counts_for_the_digest(tmp_path):
    first = read(tmp_path, SOURCE)
    assert read(tmp_path, replaced("# A demonstration", "# A Demonstration")).sha256 == first.sha256
    assert read(tmp_path, replaced("return 2 * x", "return x * 2")).sha256 != first.sha256
    assert read(tmp_path, replaced("STEPS = 3", "STEPS = 4")).sha256 != first.sha256
    assert read(tmp_path, replaced("\n# %%\nlog.close()", "\n# %%\n\n# %%\nlog.close()")).sha256 != first.sha256


def test_ids_follow_content(tmp_path):
    before = read(tmp_path, SOURCE).notebook.cells
    inserted = replaced("# %%\nfrom contrastive_jax", "# %%\nimport math\n\n# %%\nfrom contrastive_jax")
    after = read(tmp_path, inserted).notebook.cells
    assert [cell.id for cell in after if cell.source != "import math"] == [cell.id for cell in before]
    changed = read(tmp_path, replaced("STEPS = 3", "STEPS = 4")).notebook.cells
    assert [a.id == b.id for a, b in zip(before, changed, strict=True)].count(False) == 1


def test_equal_cells_have_ids_of_their_own(tmp_path):
    text = replaced("# %%\nlog.close()", "# %%\n3\n\n# %%\n3\n\n# %%\n3\n\n# %%\nlog.close()")
    ids = [cell.id for cell in read(tmp_path, text).notebook.cells]
    assert len(set(ids)) == len(ids)


# The two notebooks


def test_the_solved_notebook_keeps_everything(tmp_path):
    source = read(tmp_path, SOURCE)
    solved = notebooks.solved(source)
    assert code_of(solved) == code_of(source.notebook)
    assert "".join(code_of(solved)).count("return 2 * x") == 1
    assert prose_of(solved) == [text for text in prose_of(source.notebook) if "SOLUTION" not in text]
    assert [cell.id for cell in solved.cells] == [c.id for c in source.notebook.cells if "<!-- SOL" not in c.source]
    tags = [cell.metadata.get("tags", []) for cell in solved.cells if cell.cell_type == "code"]
    assert tags == [["parameters"], [], ["exercise"], [], []]


def test_the_learner_gets_a_stub_and_a_folded_solution(tmp_path):
    learner = notebooks.learner(read(tmp_path, SOURCE))
    (stub,) = (cell.source for cell in learner.cells if "exercise" in cell.metadata.get("tags", []))
    assert stub == (
        'def double(x):\n    """Twice `x`."""\n    # TODO 1: return ...\n'
        '    raise NotImplementedError("write this part, then run the cell again")'
    )
    (folded,) = (text for text in prose_of(learner) if "<details>" in text)
    assert folded == (
        "<details><summary>Solution</summary>\n\n"
        '```python\ndef double(x):\n    """Twice `x`."""\n    return 2 * x\n```\n\n</details>'
    )
    assert "return 2 * x" not in "".join(code_of(learner))
    assert not any("<!-- SOLUTION -->" in text for text in prose_of(learner))


EXERCISE = """\
# %% tags=["exercise"]
class Both:
    def first(self):
        ### BEGIN SOLUTION
        if True:
            return 1
        ### END SOLUTION

    def second(self):
        ### BEGIN SOLUTION
        return 2
        ### END SOLUTION

third = ...
### BEGIN SOLUTION
third = 3
### END SOLUTION

# %% [markdown]
# <!-- SOLUTION -->

"""


def test_several_solutions_keep_their_indentation(tmp_path):
    learner = notebooks.learner(read(tmp_path, replaced("# %%\nlog.close()", EXERCISE + "# %%\nlog.close()")))
    stub = next(code for code in code_of(learner) if "class Both" in code)
    raising = 'raise NotImplementedError("write this part, then run the cell again")'
    assert stub == (
        f"class Both:\n    def first(self):\n        {raising}\n\n    def second(self):\n        {raising}\n\n"
        "third = ..."
    )
    solution = [text for text in prose_of(learner) if "<details>" in text][1]
    scope: dict = {}
    exec(solution.partition("```python\n")[2].partition("\n```")[0], scope)
    assert (scope["Both"]().first(), scope["Both"]().second(), scope["third"]) == (1, 2, 3)
    assert "..." not in solution
    assert "SOLUTION" not in solution


def test_solutions_stand_in_the_order_of_their_exercises(tmp_path):
    place = "# %% [markdown]\n# <!-- SOLUTION -->\n\n"
    exercise = EXERCISE.removesuffix(place)
    text = replaced("# %% [markdown]\n# **Common mistake.**", exercise + "# %% [markdown]\n# **Common mistake.**")
    learner = notebooks.learner(read(tmp_path, replaced(place, place + place, text)))
    folded = [text for text in prose_of(learner) if "<details>" in text]
    assert ["def double" in text for text in folded] == [True, False]
    assert ["class Both" in text for text in folded] == [False, True]


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("    ### END SOLUTION\n", ""),
        ("    ### BEGIN SOLUTION\n", ""),
        ("    ### BEGIN SOLUTION\n", "    ### BEGIN SOLUTION\n    ### BEGIN SOLUTION\n"),
        ("    ### END SOLUTION\n", "    ### END SOLUTION\n    ### END SOLUTION\n"),
        ("    ### BEGIN SOLUTION\n    return 2 * x\n", "    return 2 * x  ### BEGIN SOLUTION\n"),
        ("    ### END SOLUTION\n", "    ### END SOLUTION of this\n"),
    ],
)
def test_markers_stand_in_pairs(tmp_path, old, new):
    source = read(tmp_path, replaced(old, new))
    with pytest.raises(NotebookError, match=r"01_demo\.py: .*must stand in pairs"):
        notebooks.learner(source)


def test_every_solution_is_shown_and_every_place_has_one(tmp_path):
    place = "# %% [markdown]\n# <!-- SOLUTION -->\n\n"
    with pytest.raises(NotebookError, match="never shown"):
        notebooks.learner(read(tmp_path, replaced(place, "")))
    with pytest.raises(NotebookError, match="no exercise before it"):
        notebooks.learner(read(tmp_path, replaced(place, place + place)))


def test_making_notebooks_leaves_the_source_alone(tmp_path):
    source = read(tmp_path, SOURCE)
    before = copy.deepcopy(source.notebook)
    notebooks.learner(source).cells[0].source = "changed"
    notebooks.solved(source).cells[0].source = "changed"
    assert source.notebook == before


def test_the_file_is_the_same_each_time_and_valid(tmp_path):
    made = {notebooks.to_bytes(notebooks.learner(read(tmp_path, SOURCE))) for _ in range(3)}
    (content,) = made
    notebook = nbformat.reads(content.decode(), as_version=4)
    nbformat.validate(notebook)
    assert content.endswith(b"\n") and not content.endswith(b"\n\n")
    assert all(not cell.get("outputs") and not cell.get("execution_count") for cell in notebook.cells)
    assert set(notebook.metadata) == {"kernelspec"}


# The rules of the series. Each is a function that yields what is wrong.

CLOCK = {"time", "datetime", "timeit", "calendar"}
DRAWING = {"matplotlib", "pylab", "seaborn", "plotly", "tqdm"}
NETWORK = {
    "urllib",
    "requests",
    "httpx",
    "http",
    "ftplib",
    "socket",
    "wget",
    "aiohttp",
    "tensorflow_datasets",
    "datasets",
}
SHELL = {"subprocess", "pip", "os", "sys", "shutil"}


def trees(source: Source):
    for code in code_of(source.notebook):
        try:
            yield ast.parse(code)
        except SyntaxError:
            continue


def is_plain_python(source: Source):
    for code in code_of(source.notebook):
        try:
            ast.parse(code)
        except SyntaxError:
            yield f"not plain Python (a magic or a shell command?): {code.splitlines()[0]}"


def imports_nothing_it_should_not(source: Source):
    forbidden = CLOCK | DRAWING | NETWORK | SHELL
    for tree in trees(source):
        for node in ast.walk(tree):
            names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            names += [node.module or ""] if isinstance(node, ast.ImportFrom) else []
            # By name, as in `__import__("time")`.
            if isinstance(node, ast.Call) and ast.unparse(node.func).split(".")[-1] in ("__import__", "import_module"):
                names += [str(each.value) for each in node.args if isinstance(each, ast.Constant)]
            yield from (f"imports {name}" for name in names if name.partition(".")[0] in forbidden)


def names_no_address(source: Source):
    for code in code_of(source.notebook):
        yield from re.findall(r"(?:https?|ftp)://\S+", code)


def has_short_cells(source: Source):
    for code in code_of(source.notebook):
        if len(code.splitlines()) > 40:
            yield f"a cell of {len(code.splitlines())} lines: {code.splitlines()[0]}"


def begins_with_its_title(source: Source):
    first = source.notebook.cells[0]
    if first.cell_type != "markdown" or not first.source.startswith("# "):
        yield "the first cell is not the title"
    for words in ("able to", "need", "minute"):
        if words not in first.source:
            yield f"the first cell does not say {words!r}"


def ends_by_closing_its_log(source: Source):
    if source.notebook.cells[-1].source.strip() != "log.close()":
        yield "the last cell is not log.close()"


def logs_under_its_own_name(source: Source):
    calls = [
        node
        for tree in trees(source)
        for node in ast.walk(tree)
        if isinstance(node, ast.Call) and ast.unparse(node.func) == "RunLog"
    ]
    if len(calls) != 1:
        yield f"{len(calls)} calls of RunLog"
        return
    given = {keyword.arg: ast.unparse(keyword.value) for keyword in calls[0].keywords}
    own = [name for name in source.parameters if name not in notebooks.HARNESS_PARAMETERS]
    expected = {
        "stem": repr(source.stem),
        "precision": "PRECISION",
        "parameters": "{" + ", ".join(f"'{name}': {name}" for name in own) + "}",
    }
    yield from (f"RunLog gets {name}={given.get(name)}" for name, text in expected.items() if given.get(name) != text)


def has_whole_exercises(source: Source):
    cells, passed = source.notebook.cells, 0
    for place, cell in enumerate(cells):
        if "exercise" not in cell.metadata.get("tags", []):
            if cell.cell_type == "code" and notebooks.BEGIN in cell.source:
                yield "a solution in a cell that is not tagged `exercise`"
            continue
        rest = [n for n in range(place + 1, len(cells)) if cells[n].source.strip() == notebooks.SOLUTION_PLACE]
        end = rest[0] if rest else len(cells)
        before, after = ("\n".join(c.source for c in part) for part in (cells[passed:place], cells[place:end]))
        wanted = [(before, word) for word in ("Difficulty", "minutes", "Hint 1", "Hint 2")]
        wanted += [(after, "Common mistake"), (after, "judge("), (cell.source, notebooks.BEGIN)]
        yield from (f"exercise without {word!r}" for text, word in wanted if word not in text)
        passed = end


RULES = (
    is_plain_python,
    imports_nothing_it_should_not,
    names_no_address,
    has_short_cells,
    begins_with_its_title,
    ends_by_closing_its_log,
    logs_under_its_own_name,
    has_whole_exercises,
)


def broken(source: Source) -> set[str]:
    return {rule.__name__ for rule in RULES if list(rule(source))}


def test_there_is_a_series():
    assert SERIES


@series
@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.__name__)
def test_the_series_obeys(path, rule):
    assert list(rule(of_the_series(path))) == []


@series
def test_the_series_has_fixed_names(path):
    assert path.stem in NAMES


def test_a_good_source_breaks_no_rule(tmp_path):
    assert broken(read(tmp_path, SOURCE)) == set()


LAST = "# %%\nlog.close()"


@pytest.mark.parametrize(
    ("old", "new", "rule"),
    [
        (LAST, "# %%\n# !pip install optax\n\n" + LAST, "is_plain_python"),
        (LAST, "# %%\n# %pip install optax\n\n" + LAST, "is_plain_python"),
        (LAST, "# %%\n# %time 3\n\n" + LAST, "is_plain_python"),
        (LAST, "# %%\nimport time\n\n" + LAST, "imports_nothing_it_should_not"),
        (LAST, "# %%\nfrom datetime import date\n\n" + LAST, "imports_nothing_it_should_not"),
        (LAST, "# %%\nimport matplotlib.pyplot as plt\n\n" + LAST, "imports_nothing_it_should_not"),
        (LAST, "# %%\nfrom tqdm.auto import tqdm\n\n" + LAST, "imports_nothing_it_should_not"),
        (LAST, "# %%\nfrom urllib.request import urlopen\n\n" + LAST, "imports_nothing_it_should_not"),
        (LAST, "# %%\ndef f():\n    import requests\n\n" + LAST, "imports_nothing_it_should_not"),
        (LAST, '# %%\n__import__("time")\n\n' + LAST, "imports_nothing_it_should_not"),
        (LAST, '# %%\nimportlib.import_module("subprocess")\n\n' + LAST, "imports_nothing_it_should_not"),
        (LAST, '# %%\ndata = "https://example.org/data.zip"\n\n' + LAST, "names_no_address"),
        (LAST, "# %%\n" + "x = 1\n" * 41 + "\n" + LAST, "has_short_cells"),
        ("# # A demonstration", "# A demonstration", "begins_with_its_title"),
        ("# %% [markdown]\n# # A demo", "# %%\n3\n\n# %% [markdown]\n# # A demo", "begins_with_its_title"),
        ("1 minute", "no time", "begins_with_its_title"),
        ("You need nothing", "Nothing", "begins_with_its_title"),
        ("able to do", "doing", "begins_with_its_title"),
        (LAST, "# %%\n3", "ends_by_closing_its_log"),
        (LAST, LAST + "\n\n# %% [markdown]\n# The end.", "ends_by_closing_its_log"),
        ('stem="01_demo"', 'stem="02_demo"', "logs_under_its_own_name"),
        ("precision=PRECISION", 'precision="float32"', "logs_under_its_own_name"),
        (', "STEPS": STEPS}', "}", "logs_under_its_own_name"),
        (', "STEPS": STEPS}', ', "STEPS": 3}', "logs_under_its_own_name"),
        ("# **Common mistake.** Squaring.", "# Squaring.", "has_whole_exercises"),
        ("Hint 2: think again.", "", "has_whole_exercises"),
        ("**Difficulty** one of three, 5 minutes.", "**Difficulty** one of three.", "has_whole_exercises"),
        ("judge(double)", "double(3)", "has_whole_exercises"),
        (' tags=["exercise"]', "", "has_whole_exercises"),
    ],
)
def test_each_rule_catches_a_bad_source(tmp_path, old, new, rule):
    assert broken(read(tmp_path, replaced(old, new))) == {rule}


@pytest.mark.parametrize("length", [40, 41])
def test_forty_lines_are_allowed(tmp_path, length):
    source = read(tmp_path, replaced(LAST, "# %%\n" + "x = 1\n" * length + "\n" + LAST))
    assert (list(has_short_cells(source)) == []) == (length == 40)


# The learner's copies


def in_step(path: Path) -> bool:
    copy_of = path.with_suffix(".ipynb")
    made = notebooks.to_bytes(notebooks.learner(notebooks.read(path)))
    return copy_of.exists() and copy_of.read_bytes() == made


@series
def test_the_committed_copy_is_in_step(path):
    assert in_step(path), "make notebooks"


def test_a_copy_that_is_out_of_step_is_noticed(tmp_path):
    source = read(tmp_path, SOURCE)
    assert not in_step(source.path)
    source.path.with_suffix(".ipynb").write_bytes(notebooks.to_bytes(notebooks.learner(source)))
    assert in_step(source.path)
    read(tmp_path, replaced("# A demonstration", "# A Demonstration"))
    assert not in_step(source.path)


def stubs_that_do_not_raise(source: Source) -> list[str]:
    """Functions and answers of the exercises that a learner could leave as they are without being told."""
    found = []
    for cell in notebooks.learner(source).cells:
        if "exercise" not in cell.metadata.get("tags", []):
            continue
        # What the notebook has defined above stands in for itself: a scaffold may use it before the stub.
        names = {node.id for node in ast.walk(ast.parse(cell.source)) if isinstance(node, ast.Name)}
        scope: dict = {name: MagicMock() for name in names if not hasattr(builtins, name)}
        exec(cell.source, scope)
        functions = [value for value in scope.values() if inspect.isfunction(value)]
        found += [function.__name__ for function in functions if not _raises(function)]
        found += [] if functions or scope.get("answer") is ... else [cell.source]
    return found


def _raises(function) -> bool:
    try:
        function(*(MagicMock() for _ in inspect.signature(function).parameters))
    except NotImplementedError:
        return True
    return False


@series
def test_every_exercise_raises_until_it_is_solved(path):
    source = of_the_series(path)
    assert any("exercise" in cell.metadata.get("tags", []) for cell in source.notebook.cells)
    assert stubs_that_do_not_raise(source) == []


def test_a_stub_that_passes_for_a_solution_is_noticed(tmp_path):
    assert stubs_that_do_not_raise(read(tmp_path, SOURCE)) == []
    scaffold = replaced("    ### BEGIN SOLUTION", "    y = table(x)[0] / SCALE\n    ### BEGIN SOLUTION")
    assert stubs_that_do_not_raise(read(tmp_path, scaffold)) == []
    answer = 'answer = ...\n### BEGIN SOLUTION\nanswer = "b"\n### END SOLUTION\n'
    cell = SOURCE.partition('# %% tags=["exercise"]\n')[2].partition("\n\n# %%")[0]
    assert stubs_that_do_not_raise(read(tmp_path, replaced(cell, answer))) == []
    assert stubs_that_do_not_raise(read(tmp_path, replaced(cell, answer.replace("= ...", '= "b"')))) != []
    after_return = replaced("    ### BEGIN SOLUTION", "    if x:\n        return 2\n    ### BEGIN SOLUTION")
    assert stubs_that_do_not_raise(read(tmp_path, after_return)) == ["double"]
