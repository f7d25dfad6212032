"""The set-up of `.venv`: what makes it, what makes it again, and what is said when it cannot be made.

Most tests run `reproduce.bootstrap` as make does, in a small checkout whose path has a space, with a stand-in for
uv on PATH. No test needs a network.
"""

import errno
import fcntl
import os
import shutil
import signal
import subprocess
import sys
import time
import zipfile
from pathlib import Path

import pytest

from reproduce import bootstrap, installer, stamp
from reproduce.errors import HarnessError

ROOT = Path(__file__).parent.parent
MODULES = ("__init__", "bootstrap", "errors", "installer", "pins", "stamp")

# Installs each pin as an empty distribution, as uv would put it; says its arguments in uv.calls.
FAKE_UV = """
import os, pathlib, sys, time
with open("uv.calls", "a") as calls:
    print(*sys.argv[1:], file=calls)
if os.environ.get("UV_SAYS"):
    sys.exit(os.environ["UV_SAYS"])
if os.environ.get("UV_SLEEPS"):
    pathlib.Path("uv.pid").write_text(str(os.getpid()))
    time.sleep(float(os.environ["UV_SLEEPS"]))
    pathlib.Path("uv.slept").touch()
python = pathlib.Path(sys.argv[sys.argv.index("--python") + 1])
site = next(python.parent.parent.glob("lib/python*/site-packages"))
for line in pathlib.Path("requirements.txt").read_text().split():
    name, found, version = line.partition("==")
    if found:
        folder = site / f"{name.replace('-', '_')}-{version}.dist-info"
        folder.mkdir(exist_ok=True)
        (folder / "METADATA").write_text(f"Metadata-Version: 2.1\\nName: {name}\\nVersion: {version}\\n")
"""

PYPROJECT = """
[build-system]
requires = []
build-backend = "backend"
backend-path = ["."]

[project]
name = "contrastive-jax"
version = "0"

[tool.ruff]
line-length = 110
"""

# The least build backend there is, so that pip can install the small checkout without a network.
BACKEND = """
import pathlib, zipfile
def build_editable(folder, config_settings=None, metadata_directory=None):
    name = "contrastive_jax-0-py3-none-any.whl"
    with zipfile.ZipFile(pathlib.Path(folder, name), "w") as wheel:
        info = "contrastive_jax-0.dist-info"
        wheel.writestr(f"{info}/METADATA", "Metadata-Version: 2.1\\nName: contrastive-jax\\nVersion: 0\\n")
        wheel.writestr(f"{info}/WHEEL", "Wheel-Version: 1.0\\nRoot-Is-Purelib: true\\nTag: py3-none-any\\n")
        wheel.writestr(f"{info}/RECORD", "")
    return name
"""


class Small:
    """A small checkout, and what it takes to run the set-up in it."""

    def __init__(self, root: Path, tools: Path) -> None:
        self.root = root
        self.venv = root / ".venv"
        self.stamp = self.venv / stamp.NAME
        self.environment = {"PATH": f"{tools}:/usr/bin:/bin", "HOME": str(root)}

    def start(self, **environment: str) -> subprocess.Popen[str]:
        command = [sys.executable, "-m", "reproduce.bootstrap"]
        both = self.environment | environment
        return subprocess.Popen(command, cwd=self.root, env=both, stderr=subprocess.PIPE, text=True)

    def set_up(self, **environment: str) -> tuple[int, str]:
        process = self.start(**environment)
        _, said = process.communicate(timeout=60)
        assert "Traceback" not in said
        return process.returncode, said

    def uv_calls(self) -> list[str]:
        calls = self.root / "uv.calls"
        return calls.read_text().splitlines() if calls.exists() else []


@pytest.fixture
def small(tmp_path: Path) -> Small:
    root = tmp_path / "my checkout"
    (root / "reproduce").mkdir(parents=True)
    for module in MODULES:
        shutil.copy(ROOT / "reproduce" / f"{module}.py", root / "reproduce")
    (root / "requirements.txt").write_text(
        "# by hand\ntiny-one==1.0  # via us\nfor-none==2.0 ; sys_platform == 'none'\n"
    )
    (root / "pyproject.toml").write_text(PYPROJECT)
    (root / "backend.py").write_text(BACKEND)
    tools = tmp_path / "tools"
    tools.mkdir()
    (tools / "uv.py").write_text(FAKE_UV)
    (tools / "uv").write_text(f'#!/bin/sh\nexec "{sys.executable}" "{tools}/uv.py" "$@"\n')
    (tools / "uv").chmod(0o755)
    return Small(root, tools)


@pytest.fixture
def ready(small: Small) -> Small:
    """A small checkout whose `.venv` is finished."""
    assert small.set_up()[0] == 0
    (small.root / "uv.calls").unlink()
    return small


def test_a_bare_python_can_run_it(small: Small) -> None:
    bare = [sys.executable, "-S", "-E"]
    assert subprocess.run([*bare, "-c", "import msgspec"], stderr=subprocess.DEVNULL).returncode != 0
    answer = subprocess.run([*bare, "-m", "reproduce.bootstrap", "--help"], cwd=small.root, stdout=subprocess.DEVNULL)
    assert answer.returncode == 0


def test_no_module_of_the_harness_hides_one_of_the_standard_library() -> None:
    assert not {path.stem for path in (ROOT / "reproduce").glob("*.py")} & sys.stdlib_module_names


def test_first_set_up_installs_the_pins_then_the_project_and_stamps_last(small: Small) -> None:
    status, said = small.set_up()
    assert status == 0
    assert "making .venv with Python 3" in said and "ready" in said and "by uv" in said
    pins, project = small.uv_calls()
    assert pins == f"pip install --python {small.venv}/bin/python -r requirements.txt"
    assert project == f"pip install --python {small.venv}/bin/python --no-deps --no-build-isolation -e ."
    newest = max(small.venv.rglob("*"), key=lambda path: path.lstat().st_mtime_ns)
    assert newest in (small.stamp, small.venv)


def test_a_finished_venv_is_left_alone(ready: Small) -> None:
    before = ready.stamp.read_bytes(), ready.stamp.stat().st_mtime_ns
    assert ready.set_up() == (0, "")
    assert ready.uv_calls() == []
    assert before == (ready.stamp.read_bytes(), ready.stamp.stat().st_mtime_ns)


def _edit(path: Path, old: str, new: str) -> None:
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new))


def _move(small: Small) -> None:
    moved = small.root.with_name("moved checkout")
    small.root.rename(moved)
    small.__init__(moved, moved.parent / "tools")


SPOILED = {
    "moved": (_move, "cannot be moved"),
    "no stamp": (lambda at: at.stamp.unlink(), "did not finish"),
    "its Python gone": (lambda at: (at.venv / "bin" / "python").unlink(), "its Python does not start"),
    "a package removed": (lambda at: shutil.rmtree(next(at.venv.rglob("tiny_one*"))), "no tiny-one"),
    "a package replaced": (
        lambda at: _edit(next(at.venv.rglob("tiny_one*/METADATA")), "Version: 1.0", "Version: 9"),
        "tiny-one 9 (pinned 1.0)",
    ),
}


@pytest.mark.parametrize("spoiled", SPOILED)
def test_a_spoiled_venv_is_made_again_and_the_reason_said(ready: Small, spoiled: str) -> None:
    spoil, reason = SPOILED[spoiled]
    spoil(ready)
    status, said = ready.set_up()
    assert status == 0 and "again, because" in said and reason in said
    assert len(ready.uv_calls()) == 2
    assert ready.set_up() == (0, "")


@pytest.mark.parametrize("sign", [signal.SIGINT, signal.SIGTERM])
def test_a_stopped_set_up_leaves_no_stamp_and_no_process(small: Small, sign: signal.Signals) -> None:
    process = small.start(UV_SLEEPS="30")
    installing = int(_wait_for(small.root / "uv.pid"))
    process.send_signal(sign)
    said = process.communicate(timeout=20)[1]
    assert process.returncode == bootstrap.INTERRUPTED
    assert "stopped before .venv was finished" in said and "Traceback" not in said
    assert not small.stamp.exists()
    with pytest.raises(ProcessLookupError):
        os.kill(installing, 0)
    assert "did not finish" in small.set_up()[1]


def _wait_for(path: Path) -> str:
    for _ in range(200):
        if path.exists() and path.read_text():
            return path.read_text()
        time.sleep(0.05)
    raise AssertionError(f"{path} did not appear")


def test_of_two_at_once_the_second_waits_and_finds_the_work_done(small: Small) -> None:
    first = small.start(UV_SLEEPS="0.5")
    _wait_for(small.root / "uv.pid")
    status, said = small.set_up()
    assert (status, first.wait(timeout=20)) == (0, 0)
    assert said == "set-up: another make is setting up this checkout; waiting for it\n"
    assert len(small.uv_calls()) == 2
    first.communicate()


def test_a_killed_set_up_keeps_the_lock_until_its_installer_has_ended(small: Small) -> None:
    first = small.start(UV_SLEEPS="0.5")
    _wait_for(small.root / "uv.pid")
    first.kill()
    first.communicate()
    second = small.start()
    assert second.stderr is not None and "waiting for it" in second.stderr.readline()
    assert "did not finish" in second.stderr.readline()
    assert (small.root / "uv.slept").exists()
    second.communicate()
    assert second.returncode == 0


def test_a_file_system_without_locks_is_told_and_used(small: Small, monkeypatch, capsys) -> None:
    def refuse(handle: int, operation: int) -> None:
        raise OSError(errno.ENOLCK, "No locks available")

    monkeypatch.setattr(fcntl, "flock", refuse)
    with bootstrap.one_at_a_time(small.root):
        pass
    assert "no locks (No locks available)" in capsys.readouterr().err


def test_what_is_not_ours_in_place_of_the_venv_is_kept(small: Small) -> None:
    small.venv.write_text("mine")
    assert _refusal(small, "is a file where a folder is needed. Move it away")
    assert small.venv.read_text() == "mine"
    small.venv.unlink()
    small.venv.mkdir()
    (small.venv / "notes").write_text("mine")
    assert _refusal(small, "is a folder with other things in it. Move it away")
    assert (small.venv / "notes").read_text() == "mine"
    shutil.rmtree(small.venv)
    small.venv.symlink_to("nowhere")
    assert _refusal(small, "is a link that leads nowhere. Remove the link")


def _refusal(small: Small, text: str) -> bool:
    status, said = small.set_up()
    return status == 2 and text in said and not small.uv_calls()


def test_a_venv_may_lie_elsewhere_behind_a_link(small: Small, tmp_path: Path) -> None:
    (tmp_path / "big disk").mkdir()
    small.venv.symlink_to(tmp_path / "big disk")
    assert small.set_up()[0] == 0
    assert small.set_up() == (0, "")


def test_where_uv_fails_pip_installs_with_one_line_of_notice(small: Small, tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "tiny_one-1.0-py3-none-any.whl", "w") as wheel:
        info = "tiny_one-1.0.dist-info"
        wheel.writestr(f"{info}/METADATA", "Metadata-Version: 2.1\nName: tiny-one\nVersion: 1.0\n")
        wheel.writestr(f"{info}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        wheel.writestr(f"{info}/RECORD", "")
    # PIP_TARGET would lead pip away from .venv.
    offline = {"PIP_NO_INDEX": "1", "PIP_FIND_LINKS": str(tmp_path), "PIP_CONFIG_FILE": os.devnull, "PIP_TARGET": "x"}
    status, said = small.set_up(UV_SAYS="Resolving\nerror: no certificate\n  cause: none", **offline)
    assert status == 0
    assert "notice: going on with pip, because uv said: error: no certificate\n" in said
    assert "by pip" in said and len(said.splitlines()) == 3
    assert next(small.venv.rglob("tiny_one-1.0.dist-info/METADATA"))
    assert small.set_up() == (0, "")


def test_a_full_disk_ends_it_without_trying_pip(small: Small) -> None:
    status, said = small.set_up(UV_SAYS="error: Failed to write\n  cause: No space left on device (os error 28)")
    assert status == 2 and installer.DISK_FULL in said and "pip" not in said
    assert not small.stamp.exists()


@pytest.mark.parametrize("module", ["venv", "ensurepip"])
def test_a_python_packaged_without_a_module_is_told_what_to_install(small: Small, module: str) -> None:
    hidden = small.root / "hidden"
    hidden.mkdir()
    (hidden / "sitecustomize.py").write_text(
        "import importlib.util as util\nfind = util.find_spec\n"
        f"util.find_spec = lambda name, package=None: None if name == {module!r} else find(name, package)\n"
    )
    status, said = small.set_up(UV_SAYS="error: out of order", PYTHONPATH=str(hidden))
    assert status == 2
    assert f"was packaged without its module {module}" in said and "-venv" in said


def test_an_old_python_is_refused_in_a_sentence(small: Small, monkeypatch, capsys) -> None:
    monkeypatch.setattr(sys, "version_info", (3, 10, 13))
    assert bootstrap.main([], small.root) == 2
    assert "Python 3.11 or newer is needed" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("problem", "text"),
    [
        (OSError(errno.ENOSPC, "No space left on device"), installer.DISK_FULL),
        (PermissionError(errno.EACCES, "Permission denied", "/somewhere"), "/somewhere: Permission denied"),
    ],
)
def test_what_the_system_refuses_is_said_without_a_traceback(small: Small, monkeypatch, capsys, problem, text) -> None:
    def fail(*_: object) -> str:
        raise problem

    monkeypatch.setattr(bootstrap, "install", fail)
    assert bootstrap.main([], small.root) == 2
    assert text in capsys.readouterr().err


@pytest.mark.parametrize(
    ("file", "text", "said"),
    [
        ("requirements.txt", "jax>=0.4", "line 1: 'jax>=0.4' is no exact pin"),
        ("pyproject.toml", "[project", "pyproject.toml cannot be read"),
    ],
)
def test_a_mistake_in_an_input_is_named_and_leaves_the_venv(ready: Small, file: str, text: str, said: str) -> None:
    (ready.root / file).write_text(text)
    status, words = ready.set_up()
    assert status == 2 and said in words
    assert ready.stamp.exists() and not ready.uv_calls()


def test_a_venv_that_cannot_be_stamped_is_not_called_ready(ready: Small) -> None:
    (ready.root / "pyproject.toml").unlink()
    with pytest.raises(HarnessError, match="could not be marked as finished"):
        bootstrap.finish(ready.root)
