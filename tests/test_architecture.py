"""Who may import whom, and what each package may do. Each rule is a function, shown to fail on a bad example."""

import ast
import graphlib
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from builders import ENTRIES, REPOSITORY, header

from reproduce import records

PACKAGES = ("contrastive_jax", "reproduce")
NOTEBOOKS = sorted((REPOSITORY / "notebooks").glob("*.py"))
# Records can be compared on any laptop.
LIGHT = (
    "compare",
    "causes",
    "answers",
    "report",
    "records",
    "pairing",
    "verdicts",
    "surroundings",
    "leaves",
    "noise",
    "plain_log",
    "log",
    "figure_data",
    "quoted",
)
HEAVY = ("jax", "jaxlib", "matplotlib", "papermill", "jupytext", "nbformat", "nbclient")


def modules(package: str, root: Path = REPOSITORY) -> dict[str, str]:
    """Source by module name."""
    found = {}
    for path in sorted((root / package).rglob("*.py")):
        parts = path.relative_to(root).with_suffix("").parts
        found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path.read_text(encoding="utf-8")
    return found


def imports(source: str, module: str = "", known: frozenset[str] = frozenset(), *, nested: bool) -> Iterator[str]:
    """Names of imported modules; without `nested`, only those imported as soon as the module is."""
    tree = ast.parse(source)
    package = module if f"{module}.__init__" in known else module.rpartition(".")[0]
    for node in ast.walk(tree) if nested else _run_at_import(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            parents = package.split(".")
            base = ".".join(parents[: len(parents) - node.level + 1]) if node.level else ""
            target = ".".join(filter(None, [base, node.module]))
            for alias in node.names:
                # `from package import module` imports the module.
                whole = f"{target}.{alias.name}"
                yield whole if whole in known else target


def _run_at_import(node: ast.AST) -> Iterator[ast.AST]:
    for child in ast.iter_child_nodes(node):
        if not isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
            yield child
            yield from _run_at_import(child)


def top(name: str) -> str:
    return name.partition(".")[0]


def foreign_imports_of_a_notebook(source: str) -> list[str]:
    """What a notebook imports of the project besides the mathematics and the log."""
    every = imports(source, known=frozenset(["reproduce.log"]), nested=True)
    ours = [name for name in every if top(name) in PACKAGES]
    return [name for name in ours if top(name) != "contrastive_jax" and name != "reproduce.log"]


def imports_of_the_other_package(package: str, source: str) -> list[str]:
    (other,) = set(PACKAGES) - {package}
    return [name for name in imports(source, f"{package}.module", nested=True) if top(name) == other]


def cycle(sources: dict[str, str]) -> list[str]:
    """Modules that import each other in a circle, or nothing."""
    known = frozenset(sources) | {
        f"{name}.__init__" for name in sources if any(m.startswith(f"{name}.") for m in sources)
    }
    graph = {
        name: {each for each in imports(source, name, known, nested=False) if each in sources}
        for name, source in sources.items()
    }
    try:
        graphlib.TopologicalSorter(graph).prepare()
    except graphlib.CycleError as error:
        return error.args[1]
    return []


IMPURE = {"matplotlib", "pathlib", "time", "os", "sys", "io", "datetime", "random", "subprocess", "tempfile", "logging"}


def impurities(source: str) -> list[str]:
    """Where mathematics would print, plot, read files or look at the clock."""
    found = [name for name in imports(source, nested=True) if top(name) in IMPURE]
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Call) and ast.unparse(node.func) in (
            "print",
            "open",
            "input",
            "exec",
            "eval",
            "__import__",
        ):
            found.append(ast.unparse(node.func))
    return found


def every_module() -> list:
    return [pytest.param(p, source, id=name) for p in PACKAGES for name, source in modules(p).items()]


def test_there_is_something_to_look_at():
    assert NOTEBOOKS and all(len(modules(package)) > 3 for package in PACKAGES)
    assert {f"reproduce.{name}" for name in LIGHT} <= set(modules("reproduce"))


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_notebooks_import_the_mathematics_and_the_log(path):
    assert foreign_imports_of_a_notebook(path.read_text(encoding="utf-8")) == []


@pytest.mark.parametrize(
    "line",
    [
        "import reproduce",
        "import reproduce.records",
        "from reproduce import records",
        "from reproduce.records import Metric",
        "def f():\n    from reproduce.figures import to_svg",
        "import reproduce.log, reproduce.compare",
    ],
)
def test_a_notebook_that_imports_more_is_noticed(line):
    good = (
        "import jax\nimport contrastive_jax\nfrom contrastive_jax.losses import x\nfrom reproduce.log import RunLog\n"
    )
    assert foreign_imports_of_a_notebook(good) == []
    assert foreign_imports_of_a_notebook(good + line) != []


@pytest.mark.parametrize(("package", "source"), every_module())
def test_the_packages_do_not_know_each_other(package, source):
    assert imports_of_the_other_package(package, source) == []


@pytest.mark.parametrize(
    "line", ["import {}", "import {}.x as y", "from {} import x", "from {}.x import y", "def f():\n    import {}"]
)
@pytest.mark.parametrize(("package", "other"), [PACKAGES, PACKAGES[::-1]])
def test_a_package_that_knows_the_other_is_noticed(package, other, line):
    assert imports_of_the_other_package(package, line.format(other)) != []
    assert imports_of_the_other_package(package, f"import jax\nfrom .{other} import x\nimport {package}.x") == []


@pytest.mark.parametrize("package", PACKAGES)
def test_there_is_no_cycle(package):
    assert cycle(modules(package)) == []


@pytest.mark.parametrize(
    "sources",
    [
        {"p.a": "from . import b", "p.b": "from .a import x", "p": ""},
        {"p.a": "import p.b", "p.b": "from p import a", "p": ""},
        {"p.a": "from .b import x", "p.b": "from .c import x", "p.c": "if True:\n    from .a import x", "p": ""},
        {"p": "from .a import x", "p.a": "from . import y"},
        {"p.q": "from .a import x", "p.q.a": "from ..b import x", "p.b": "from .q.a import x", "p": ""},
        {
            "p.a": "class A:\n    from .b import x",
            "p.b": "try:\n    from .a import x\nexcept ImportError:\n    pass",
            "p": "",
        },
    ],
)
def test_a_cycle_is_noticed(sources):
    assert len(cycle(sources)) > 2


@pytest.mark.parametrize(
    "sources",
    [
        {"p.a": "from . import b", "p.b": "def f():\n    from .a import x", "p": ""},
        {"p.a": "from .b import x\nfrom .c import x", "p.b": "from .c import x", "p.c": "import json", "p": ""},
    ],
)
def test_no_cycle_is_made_up(sources):
    assert cycle(sources) == []


def mathematics() -> dict[str, str]:
    """All but the judge, which talks to a learner and keeps an eye on the clock."""
    pure_too = ("contrastive_jax.exercises.oracles", "contrastive_jax.exercises.catalogue")
    return {
        name: source
        for name, source in modules("contrastive_jax").items()
        if not name.startswith("contrastive_jax.exercises") or name.startswith(pure_too)
    }


@pytest.mark.parametrize("source", mathematics().values(), ids=mathematics())
def test_mathematics_is_pure(source):
    assert impurities(source) == []


def test_the_losses_do_not_know_the_exercises():
    for name, source in mathematics().items():
        if not name.startswith("contrastive_jax.exercises"):
            known = frozenset(modules("contrastive_jax")) | {"contrastive_jax.__init__"}
            assert not [each for each in imports(source, name, known, nested=True) if "exercises" in each], name


@pytest.mark.parametrize(
    "line",
    [
        "import time",
        "import os.path",
        "from pathlib import Path",
        "import matplotlib.pyplot as plt",
        "def f():\n    import datetime",
        "print(3)",
        "def f():\n    with open('a') as file:\n        pass",
    ],
)
def test_impure_mathematics_is_noticed(line):
    assert impurities('import jax.numpy as jnp\n\ndef f(x):\n    """print(x)"""\n    return jnp.sum(x)\n') == []
    assert impurities(line) != []


def run_without(blocked: tuple[str, ...], program: str) -> subprocess.CompletedProcess[str]:
    """Run a program in a process that cannot import `blocked`."""
    head = f"import runpy, sys\nfor name in {blocked!r}: sys.modules[name] = None\n"
    command = [sys.executable, "-c", head + program]
    return subprocess.run(command, cwd=REPOSITORY, capture_output=True, text=True, check=False)


def test_records_are_compared_without_jax_matplotlib_and_papermill(tmp_path):
    record = tmp_path / "a.jsonl"
    record.write_bytes(records.encode(header(), list(ENTRIES)))
    program = "".join(f"import reproduce.{name}\n" for name in LIGHT)
    program += f"sys.argv[1:] = ['compare', {str(record)!r}, {str(record)!r}]\n"
    program += "runpy.run_module('reproduce', run_name='__main__')"
    done = run_without(HEAVY, program)
    assert (done.returncode, done.stderr) == (0, "")
    assert "Agrees: all 32 numbers" in done.stdout


def test_all_recorded_releases_are_compared_without_jax_each_within_two_seconds():
    resource = pytest.importorskip("resource")
    recorded = REPOSITORY / "recorded_runs"
    folders = [path for path in recorded.iterdir() if path.is_dir()]
    reference = recorded / (recorded / "REFERENCE").read_text().strip()
    program = "sys.argv[1:] = ['compare', {!r}, {!r}]\nrunpy.run_module('reproduce', run_name='__main__')"
    for folder in folders:
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        done = run_without(HEAVY, program.format(str(reference), str(folder)))
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        assert done.stdout.splitlines()[-1].startswith("Agrees: all ") and not done.stderr, folder
        # Time of the processor, because others may be busy, too.
        assert after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime < 2, folder


def test_a_module_that_needs_jax_is_noticed():
    assert "jax" in run_without(HEAVY, "import reproduce.probes").stderr


# Each would be felt by whoever imports the package for a loss: optax alone takes a tenth of a second.
NOT_FOR_A_LOSS = ("optax", "matplotlib", "msgspec", "rich", "typer", "contrastive_jax.exercises", "reproduce")
ONE_LOSS = "import jax.numpy as jnp, contrastive_jax\ncontrastive_jax.nt_xent(jnp.eye(4), method='tiled')\n"


def test_a_loss_needs_little_besides_jax():
    done = run_without(NOT_FOR_A_LOSS, ONE_LOSS)
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize(
    "line",
    [
        "import optax",
        "from contrastive_jax.exercises import judge",
        "import jax; contrastive_jax.train(contrastive_jax.init_encoder(jax.random.key(0)), None, ())",
    ],
)
def test_a_loss_that_needs_more_is_noticed(line):
    assert "None in sys.modules" in run_without(NOT_FOR_A_LOSS, ONE_LOSS + line).stderr


def needed_by(starts: tuple[str, ...], but: set[str]) -> set[str]:
    """Every module of the harness that these can come to import, in functions too, not by way of `but`."""
    sources = {name: source for name, source in modules("reproduce").items() if name not in but}
    known = frozenset(sources) | {"reproduce.__init__"}
    found, waiting = set(), [f"reproduce.{name}" for name in starts]
    while waiting:
        name = waiting.pop()
        if name not in found:
            found.add(name)
            waiting += [each for each in imports(sources[name], name, known, nested=True) if each in sources]
    return found


def test_a_change_of_what_runs_in_the_kernel_is_never_fresh():
    from reproduce.freshness import KERNEL_MODULES

    # Errors, what is read of others, pictures and pages: they can neither move a number nor change a line of a record.
    harmless = {f"reproduce.{name}" for name in ("errors", "received", "figures", "portfolio", "checkout")} | {
        "reproduce"
    }
    assert needed_by(("log", "environment"), but=harmless) == {f"reproduce.{name}" for name in KERNEL_MODULES}


def test_nothing_of_the_harness_can_say_traceback():
    for name, source in modules("reproduce").items():
        strings = [
            n.value for n in ast.walk(ast.parse(source)) if isinstance(n, ast.Constant) and isinstance(n.value, str)
        ]
        assert not [text for text in strings if re.search(r"\bTraceback\b", text)], name
