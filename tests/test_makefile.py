"""The Makefile: its help, the options it hands on, the status it leaves with, the Python it picks.

A stand-in for Python writes down how it is called and ends as told, so none of the work behind the targets is done.
"""

import os
import re
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
MAKEFILE = (ROOT / "Makefile").read_text()
TARGETS = re.findall(r"\S+", re.findall(r"^\.PHONY: (.*)$", MAKEFILE, re.MULTILINE)[0])

FAKE_PYTHON = """#!/bin/sh
printf '%s\\n' "$*" >> "$CALLS"
case "$*" in
  "-m reproduce run"*) echo ran; exit "${RUN:-0}" ;;
  "-m reproduce check"*) exit "${CHECK:-0}" ;;
  "-m reproduce"*) exit "${OTHER:-0}" ;;
esac
"""


class Checkout:
    """A folder with a space in its name that holds the Makefile, and a stand-in for Python."""

    def __init__(self, root: Path, tools: Path) -> None:
        self.root, self.tools = root, tools
        self.calls = tools / "calls"

    def tool(self, name: str, text: str) -> Path:
        path = self.tools / name
        path.write_text(text)
        path.chmod(0o755)
        return path

    def make(self, *arguments: str, path: str = "", **environment: str) -> subprocess.CompletedProcess[str]:
        both = {"PATH": path or "/usr/bin:/bin", "CALLS": str(self.calls), **environment}
        self.calls.write_text("")
        command = [str(shutil.which("make")), *arguments]
        return subprocess.run(command, cwd=self.root, env=both, capture_output=True, text=True, timeout=60)

    def harness_calls(self) -> list[str]:
        """Calls of Python but for those of the set-up."""
        return [call for call in self.calls.read_text().splitlines() if not re.match("-c|-m reproduce.bootstrap", call)]


@pytest.fixture
def checkout(tmp_path: Path) -> Checkout:
    root, tools = tmp_path / "my checkout", tmp_path / "my tools"
    root.mkdir()
    tools.mkdir()
    shutil.copy(ROOT / "Makefile", root)
    made = Checkout(root, tools)
    made.tool("python", FAKE_PYTHON)
    return made


@pytest.fixture
def fake(checkout: Checkout) -> str:
    return f"PYTHON={checkout.tools}/python"


def test_plain_make_explains_every_target_and_value(checkout: Checkout) -> None:
    shown = checkout.make().stdout
    assert len(TARGETS) > 10
    for target in set(TARGETS) - {"help"}:
        assert re.search(rf"^  {target} +\S", shown, re.MULTILINE), target
    for value in (
        "NB=",
        "FORCE=",
        "REPLACE=",
        "PARAMETERS=",
        "JOBS=",
        "JAX=",
        "PRECISION=",
        "UV=",
        "OUT=",
        "PYTHON=",
        "ARGS=",
    ):
        assert re.search(rf"^  {value}\S* +\S", shown, re.MULTILINE), value
    assert checkout.calls.read_text() == ""


def test_every_target_is_phony() -> None:
    rules = re.findall(r"^([a-z][a-z -]*):(?!=)", MAKEFILE, re.MULTILINE)
    assert {target for rule in rules for target in rule.split()} == set(TARGETS)


def test_where_nothing_could_start_nothing_is_compared(checkout: Checkout, fake: str) -> None:
    made = checkout.make("reproduce", fake, RUN="2")
    assert checkout.harness_calls() == ["-m reproduce run"]
    assert "make reproduce: exit status 2" in made.stderr


def test_json_is_alone_on_the_output(checkout: Checkout, fake: str) -> None:
    plain, as_json = (checkout.make("check", fake, *arguments) for arguments in ((), ("ARGS=--json",)))
    assert (plain.stdout, as_json.stdout) == ("ran\n", "")
    assert "ran\n" in as_json.stderr


@pytest.mark.parametrize("target", ["reproduce", "check"])
@pytest.mark.parametrize(("run", "check", "status"), [(0, 0, 0), (0, 1, 1), (0, 2, 2), (3, 0, 3), (3, 1, 3), (1, 3, 3)])
def test_the_worse_status_wins(checkout: Checkout, fake: str, target: str, run: int, check: int, status: int) -> None:
    made = checkout.make(target, fake, RUN=str(run), CHECK=str(check))
    assert checkout.harness_calls() == ["-m reproduce run", "-m reproduce check"]
    if status:
        assert f"make {target}: exit status {status} (0 agrees" in made.stderr
        assert re.search(rf"Error {status}$", made.stderr)
    else:
        assert (made.returncode, made.stderr) == (0, "")


def test_a_run_that_was_stopped_is_not_compared(checkout: Checkout, fake: str) -> None:
    made = checkout.make("reproduce", fake, RUN="130")
    assert checkout.harness_calls() == ["-m reproduce run"]
    assert made.stderr.endswith("Error 130\n")


def test_several_parameters_are_handed_on(checkout: Checkout, fake: str) -> None:
    checkout.make("reproduce", fake, "PARAMETERS=STEPS=60 RATE=0.03")
    assert checkout.harness_calls()[0] == "-m reproduce run --parameter STEPS=60 --parameter RATE=0.03"


@pytest.mark.parametrize("shell", ["sh", "bash"])
def test_an_interruption_that_the_harness_survives_ends_it_all(checkout: Checkout, shell: str) -> None:
    started = checkout.tools / "started"
    waits = f"trap 'exit 3' INT; touch '{started}'; sleep 20"
    slow = checkout.tool("slow", FAKE_PYTHON.replace('exit "${RUN:-0}"', waits))
    command = [
        sys.executable,
        "-c",
        # What runs in the background of a shell ignores the signal, and so would everything that it starts.
        "import os, signal, sys; signal.signal(signal.SIGINT, signal.SIG_DFL); os.execvp('make', sys.argv[1:])",
        *("make", "reproduce", f"PYTHON={slow}", f"SHELL={shutil.which(shell)}"),
    ]
    both = {"PATH": "/usr/bin:/bin", "CALLS": str(checkout.calls)}
    make = subprocess.Popen(command, cwd=checkout.root, env=both, stderr=subprocess.PIPE, start_new_session=True)
    while not started.exists() and make.poll() is None:
        time.sleep(0.02)
    os.killpg(make.pid, signal.SIGINT)
    make.communicate(timeout=20)
    assert checkout.harness_calls() == ["-m reproduce run"]


OPTIONS = {
    "reproduce NB=01 FORCE=1 JOBS=2 ARGS=--json": ["run --nb 01 --force --jobs 2", "check --nb 01 --json"],
    "check PARAMETERS=A=1": ["run --parameter A=1", "check"],
    "run NB=01 FORCE=1 PARAMETERS=A=1": ["run --nb 01 --force --parameter A=1"],
    "record NB=01 REPLACE=1 FORCE=1 JOBS=2": ["record --nb 01 --replace --force --jobs 2"],
    "compare A=one B=two ARGS=--json": ["compare one two --json"],
    "matrix": ["matrix --uv uv"],
    "matrix JAX=0.8.3 NB=01 FORCE=1 REPLACE=1 JOBS=2 UV=my/uv ARGS=--json": [
        "matrix --jax 0.8.3 --nb 01 --force --replace --jobs 2 --uv my/uv --json"
    ],
    "bisect ENTRY=01:a/b[3] FROM=0.6.2 TO=0.7.2": ["bisect --entry 01:a/b[3] --from 0.6.2 --to 0.7.2 --uv uv"],
    "bisect ENTRY=probe:exp FROM=1 TO=2 PRECISION=float32 UV=u": [
        "bisect --entry probe:exp --from 1 --to 2 --precision float32 --uv u"
    ],
    "show NB=01": ["show --nb 01"],
    "show FILE=a.jsonl": ["show a.jsonl"],
    "report": ["report"],
    "report OUT=my/folder": ["report --out my/folder"],
    "figures NB=02": ["figures --nb 02"],
    "notebooks": ["notebooks"],
}


@pytest.mark.parametrize("command", OPTIONS)
def test_values_are_handed_on(checkout: Checkout, fake: str, command: str) -> None:
    assert checkout.make(*command.split(), fake).returncode == 0
    assert checkout.harness_calls() == [f"-m reproduce {call}" for call in OPTIONS[command]]


@pytest.mark.parametrize(
    ("target", "asks"),
    [
        ("compare", "A=... B=..."),
        ("show", "NB=01"),
        ("lock", "uv"),
        ("bisect", "ENTRY=... FROM=... TO=..."),
        ("bisect ENTRY=01:a FROM=0.6.2", "ENTRY=... FROM=... TO=..."),
    ],
)
def test_a_missing_value_is_asked_for(checkout: Checkout, fake: str, target: str, asks: str) -> None:
    made = checkout.make(*target.split(), fake, "UV=no-such-uv")
    assert made.returncode == 2 and asks in made.stderr
    assert checkout.harness_calls() == []


def test_several_releases_are_handed_on(checkout: Checkout, fake: str) -> None:
    checkout.make("matrix", fake, "JAX=0.8.3 0.10.2")
    assert checkout.harness_calls() == ["-m reproduce matrix --jax 0.8.3 0.10.2 --uv uv"]


def test_clean_keeps_the_environments(checkout: Checkout) -> None:
    for folder in (".venv", ".matrix", "build"):
        (checkout.root / folder).mkdir()
    assert checkout.make("clean").returncode == 0
    assert [(checkout.root / folder).exists() for folder in (".venv", ".matrix", "build")] == [True, True, False]


def test_standard_output_holds_nothing_but_the_record(checkout: Checkout, fake: str) -> None:
    assert checkout.make("show", fake, "NB=01").stdout == ""


@pytest.mark.parametrize("target", ["setup", "test", "lint", "reproduce"])
def test_a_failed_set_up_ends_every_target(checkout: Checkout, target: str) -> None:
    broken = checkout.tool("broken", FAKE_PYTHON.replace("case", '[ "$2" != reproduce.bootstrap ] || exit 2\ncase'))
    made = checkout.make(target, f"PYTHON={broken}")
    assert made.returncode == 2
    assert checkout.harness_calls() == []


@pytest.mark.parametrize("python", ["no-such-python", "old"])
def test_a_chosen_python_that_is_of_no_use_is_named(checkout: Checkout, python: str) -> None:
    checkout.tool("old", "#!/bin/sh\nexit 1\n")
    made = checkout.make("setup", f"PYTHON={python}", path=f"{checkout.tools}:/usr/bin:/bin")
    assert made.returncode == 2
    assert f"PYTHON={python} is no Python 3.11 or newer that starts" in made.stderr


def _only_shell_tools(checkout: Checkout) -> str:
    """Return a PATH that holds the shell and nothing else."""
    shell = checkout.tools / "shell"
    shell.mkdir()
    (shell / "sh").symlink_to("/bin/sh")
    return str(shell)


def test_names_that_do_not_answer_are_passed_over(checkout: Checkout) -> None:
    shims, later = checkout.tools / "shims", checkout.tools / "later"
    shims.mkdir()
    later.mkdir()
    checkout.tool("shims/python3.11", "#!/bin/sh\necho 'no such version' >&2\nexit 127\n")
    checkout.tool("shims/python3", f"#!/bin/sh\necho wrong >> '{checkout.calls}'\n")
    checkout.tool("later/python3.11", FAKE_PYTHON)
    made = checkout.make("setup", path=f"{shims}:{later}:{_only_shell_tools(checkout)}")
    assert (made.returncode, made.stderr) == (0, "")
    assert checkout.calls.read_text().splitlines()[1:] == ["-m reproduce.bootstrap"]


def test_without_any_python_the_next_step_is_said(checkout: Checkout) -> None:
    made = checkout.make("setup", path=_only_shell_tools(checkout))
    assert made.returncode == 2
    assert "no Python 3.11 or newer is on PATH. Install Python 3.11" in made.stderr


def test_the_check_of_the_version_knows_this_python(checkout: Checkout) -> None:
    made = checkout.make("-n", "setup", f"PYTHON={sys.executable}")
    check = re.findall(r"-c '(.*?)'", made.stdout)[0]
    assert subprocess.run([sys.executable, "-c", check]).returncode == 0
    old = check.replace("sys.version_info", "(3, 10, 13)")
    assert old != check
    assert subprocess.run([sys.executable, "-c", old]).returncode == 1


def test_the_venv_is_kept_from_the_paths_of_the_callers_shell(checkout: Checkout) -> None:
    venv = checkout.root / ".venv" / "bin"
    venv.mkdir(parents=True)
    (venv / "python").write_text('#!/bin/sh\necho "$PYTHONPATH$PYTHONHOME" >> "$CALLS"\n')
    (venv / "python").chmod(0o755)
    checkout.make("figures", PYTHONPATH="stray", PYTHONHOME="stray")
    assert checkout.calls.read_text().split() == []
    checkout.make("figures", "PYTHON=.venv/bin/python", PYTHONPATH="stray")
    assert set(checkout.calls.read_text().split()) == {"stray"}
