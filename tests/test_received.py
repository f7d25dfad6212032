"""Records sent by a stranger are data: bounded, inside their folder, and an error names the file and the line."""

import json
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest
from builders import ENTRIES, REPOSITORY, both_environments, header, record
from hypothesis import given
from hypothesis import strategies as st

from reproduce import environment, noise, pairing, records, terminal
from reproduce.commands.options import out
from reproduce.errors import CANNOT_COMPARE, HarnessError
from reproduce.noise import NoiseFile, PrecisionNoise

STEM = "01_demo"
NOISE = noise.encode(
    NoiseFile(noise.SCHEMA, STEM, {"float64": PrecisionNoise(record(*ENTRIES).sha256, {}, {"a": {"v": [0.5]}})}, [])
)
GOOD = {
    f"{STEM}.float64.jsonl": records.encode(header(), list(ENTRIES)),
    f"{STEM}.noise.json": NOISE,
    "ENVIRONMENT.json": environment.encode_recorded(both_environments()),
}
BESIDE = [f"{STEM}.noise.json", "ENVIRONMENT.json"]


@pytest.fixture
def sent(tmp_path) -> Path:
    """A folder as someone sends it, with nothing wrong."""
    folder = tmp_path / "sent"
    for name, content in GOOD.items():
        records.write_atomically(folder / name, content)
    return folder


def refused(folder: Path) -> str:
    """What is said where a folder cannot be compared, with either side, and at once."""
    began, said = time.process_time(), []
    for pair in ((folder, folder), (folder / f"{STEM}.float64.jsonl",) * 2):
        with pytest.raises(HarnessError) as caught:
            pairing.compare_paths(*pair)
        assert caught.value.status == CANNOT_COMPARE
        said.append(str(caught.value))
    assert time.process_time() - began < 5
    return said[0]


def test_nothing_is_wrong_with_the_folder_that_the_tests_spoil(sent):
    (result,) = pairing.compare_paths(sent, sent).values()
    assert result.comparison and result.comparison.agrees


def nth_line(content: bytes, place: int) -> int:
    return len(content[:place].split(b"\n"))


@pytest.mark.parametrize("name", BESIDE)
@pytest.mark.parametrize(
    "bad", [b"\xff", b"\n\n]", b"\n\x00", b"\xed\xa0\x80"], ids=["no UTF-8", "no JSON", "a null byte", "a surrogate"]
)
def test_the_line_is_named(sent, name, bad):
    content = GOOD[name]
    place = content.index(b'"', len(content) // 2)
    place = content.index(b'"', content.index(b"\n", place)) + (not bad.isascii())
    (sent / name).write_bytes(content[:place] + bad + content[place:])
    line = nth_line(content, place) + bad.count(b"\n")
    assert f"{name}:{line}: " in refused(sent)


@pytest.mark.parametrize("name", BESIDE)
def test_a_file_that_is_cut_short(sent, name):
    content = GOOD[name]
    for kept in (0, 1, len(content) // 2, len(content) - 2):
        (sent / name).write_bytes(content[:kept])
        assert f"{name}:{nth_line(content, kept)}: " in refused(sent)


@pytest.mark.parametrize("name", [*GOOD])
def test_a_huge_file_is_not_read_to_its_end(sent, name):
    os.truncate(sent / name, 2**40)
    assert name in refused(sent) and "larger than the" in refused(sent)


@pytest.mark.parametrize("name", [*GOOD])
@pytest.mark.parametrize("opened", [b'{"q":' + b"[" * 500_000, b'{"schema":2,"q":' + b"[" * 9000 + b"]" * 9000 + b"}"])
def test_brackets_without_end(sent, name, opened):
    (sent / name).write_bytes(opened)
    assert name in refused(sent)


@pytest.mark.parametrize("name", BESIDE)
@pytest.mark.parametrize("number", ["1" * 5000, "1e999", "-1e999", "NaN", "Infinity", "9" * 400 + ".5"])
def test_numbers_without_bounds(sent, name, number):
    old = b'"threads": 2' if name == "ENVIRONMENT.json" else b"0.5"
    assert old in GOOD[name]
    (sent / name).write_bytes(GOOD[name].replace(old, b'"threads": ' * old.startswith(b'"') + number.encode()))
    assert name in refused(sent)


@pytest.mark.parametrize("name", BESIDE)
def test_many_small_parts_are_bounded_by_the_size_of_the_file(sent, name):
    many = json.dumps({f"n{n}": {} for n in range(300_000)}).encode()
    assert len(many) > 2**20
    key = b'"probes": ' if name == "ENVIRONMENT.json" else b'"floors": '
    start = GOOD[name].index(key) + len(key)
    (sent / name).write_bytes(GOOD[name][:start] + many + b"," + GOOD[name][start:])
    assert name in refused(sent)


@given(st.binary(max_size=60))
def test_junk_is_refused_with_the_name_of_the_file(tmp_path_factory, junk):
    path = tmp_path_factory.mktemp("junk") / "junk.json"
    path.write_bytes(junk)
    for read in (environment.read, noise.read):
        with pytest.raises(HarnessError, match=r"junk\.json"):
            read(path)


@pytest.mark.parametrize("name", [*GOOD])
def test_a_link_out_of_the_folder_is_not_followed(sent, name, tmp_path):
    (sent / name).rename(tmp_path / "elsewhere")
    (sent / name).symlink_to(tmp_path / "elsewhere")
    if name.endswith(".jsonl"):
        with pytest.raises(HarnessError, match="leads out of"):
            pairing.compare_paths(sent, sent)
    else:
        assert "leads out of" in refused(sent)


@pytest.mark.parametrize("name", BESIDE)
def test_a_link_to_nothing_or_to_itself_is_not_passed_over(sent, name):
    for target in ("nowhere", name):
        (sent / name).unlink()
        (sent / name).symlink_to(target)
        assert name in refused(sent)


def test_a_run_folder_that_is_a_link_out_is_not_followed(tmp_path):
    runs, secret = tmp_path / "runs", tmp_path / "secret"
    records.write_atomically(secret / "record.jsonl", GOOD[f"{STEM}.float64.jsonl"])
    runs.mkdir()
    (runs / f"{STEM}.float64").symlink_to(secret)
    with pytest.raises(HarnessError, match="leads out of"):
        pairing.compare_paths(runs, runs)


def test_a_folder_that_is_itself_a_link_is_fine(sent, tmp_path):
    (tmp_path / "link").symlink_to(sent)
    (result,) = pairing.compare_paths(tmp_path / "link", sent).values()
    assert result.comparison and result.comparison.agrees


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="pipes with names are of Unix")
@pytest.mark.parametrize("name", [*GOOD])
def test_a_pipe_keeps_nobody_waiting(sent, name):
    (sent / name).unlink()
    os.mkfifo(sent / name)
    code = (
        f"from reproduce import pairing; from pathlib import Path as P; pairing.compare_paths(*[P({str(sent)!r})] * 2)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=False, timeout=60, cwd=REPOSITORY
    )
    assert "plain file" in done.stderr


@pytest.mark.parametrize("name", ["a\x1b[2J.jsonl", "a\nAgrees.jsonl", "a\u202eb.jsonl"])
def test_a_name_that_would_steer_the_terminal_is_refused(sent, name):
    (sent / f"{STEM}.float64.jsonl").rename(sent / name)
    with pytest.raises(HarnessError) as caught:
        pairing.compare_paths(sent, sent)
    assert str(caught.value).isprintable()


def test_files_are_counted_before_any_is_read(tmp_path, monkeypatch):
    for number in range(pairing.MAX_FILES + 1):
        (tmp_path / f"a{number}.jsonl").touch()
    monkeypatch.setattr(records, "read", lambda path: pytest.fail("a file was read"))
    with pytest.raises(HarnessError, match="at most 1000 are read"):
        pairing.compare_paths(tmp_path, tmp_path)


# What is shown


@given(st.text())
def test_no_text_steers_the_terminal(text):
    shown = terminal.harmless(text)
    assert all(sign.isprintable() or sign in "\n\t" for sign in shown) and len(shown) == len(text)


def test_what_can_be_printed_stays():
    assert terminal.harmless("Wärme, 温度\n\tµ ½ → 3") == "Wärme, 温度\n\tµ ½ → 3"


@pytest.mark.parametrize("command", ["compare", "show"])
def test_a_record_cannot_steer_the_terminal(tmp_path, command):
    steering = "\x1b]0;title\x07 \x1b[2J \x9b31m \u202e"
    entries = [records.Text("a", steering), records.Claim("b", True, 0.5, steering), records.Metric("c", 1.0, steering)]
    one, other = tmp_path / "one.jsonl", tmp_path / "other.jsonl"
    one.write_bytes(records.encode(header(), entries))
    other.write_bytes(records.encode(header(), [records.Text("a", "b"), records.Metric("c", 2.0)]))
    arguments = [str(one)] if command == "show" else [str(other), str(one)]
    done = subprocess.run(
        [sys.executable, "-m", "reproduce", command, *arguments], capture_output=True, check=False, cwd=REPOSITORY
    )
    said = (done.stdout + done.stderr).decode()
    assert "title" in said and all(sign.isprintable() or sign == "\n" for sign in said)
    assert isinstance(out, terminal.Terminal)
