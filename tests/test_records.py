"""Record files: whatever is done to one, it is read whole and unchanged or refused with a sentence."""

import hashlib
import json
import os
import stat
import struct
from pathlib import Path

import pytest
from builders import ENTRIES, FIGURE, changed, header, record, signed
from hypothesis import given
from hypothesis import strategies as st

from reproduce import records
from reproduce.errors import CANNOT_COMPARE
from reproduce.records import Claim, Figure, Incomplete, Metric, RecordError, Series, Text

CONTENT = records.encode(header(), list(ENTRIES))
LINES = CONTENT.splitlines(keepends=True)


def refused(content: bytes) -> RecordError:
    with pytest.raises(RecordError) as caught:
        records.parse(content, "a.jsonl")
    return caught.value


def test_every_kind_of_entry_comes_back():
    read = records.parse(CONTENT, "a.jsonl")
    assert read.header == header()
    assert read.entries == ENTRIES


def test_the_form_of_the_file():
    lines = [json.loads(line, parse_constant=pytest.fail) for line in LINES]
    assert lines[0]["kind"] == "header"
    assert [line["name"] for line in lines[1:-1]] == [entry.name for entry in ENTRIES]
    body = b"".join(LINES[:-1])
    assert lines[-1] == {"kind": "end", "entries": len(ENTRIES), "sha256": hashlib.sha256(body).hexdigest()}


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_floats_keep_every_bit(value):
    kept = record(Metric("a", value), Series("b", [value, -value])).entries
    assert isinstance(kept[0], Metric) and isinstance(kept[1], Series)
    found = [kept[0].value, *kept[1].values]
    assert all(isinstance(each, float) for each in found)
    assert struct.pack("<3d", *map(float, found)) == struct.pack("<3d", value, value, -value)


@given(st.integers(-(2**63), 2**63 - 1))
def test_integers_stay_integers(value):
    (kept,) = record(Metric("a", value)).entries
    assert isinstance(kept, Metric) and type(kept.value) is int and kept.value == value


@pytest.mark.parametrize("value", ["NaN", "Infinity", "-Infinity"])
def test_what_json_lacks_stands_as_strings(value):
    entries = (Metric("a", value), Series("b", [1.0, value]), Claim("c", False, value, "d"))
    content = records.encode(header(), list(entries))
    for line in content.splitlines():
        json.loads(line, parse_constant=pytest.fail)
    assert records.parse(content, "a.jsonl").entries == entries


@pytest.mark.parametrize("kept", range(len(LINES)))
def test_cut_after_a_line(kept):
    assert isinstance(refused(b"".join(LINES[:kept])), Incomplete)


def test_cut_anywhere():
    for length in range(len(CONTENT)):
        error = refused(CONTENT[:length])
        assert isinstance(error, Incomplete) or 0 < length < len(LINES[0])


@pytest.mark.parametrize("byte", [b"0", b"\n", b'"', b" ", b"\xff", b"}"])
def test_no_byte_can_be_changed_unseen(byte):
    for place in range(len(CONTENT)):
        if CONTENT[place : place + 1] != byte:
            refused(CONTENT[:place] + byte + CONTENT[place + 1 :])


def test_edited_by_hand():
    error = refused(CONTENT.replace(b"0.56640625", b"0.56640626"))
    assert "edited after recording" in str(error) and not isinstance(error, Incomplete)


@pytest.mark.parametrize(
    "edited",
    [
        [LINES[0], LINES[2], LINES[1], *LINES[3:]],
        [line.replace(b"\n", b"\r\n") for line in LINES],
        [*LINES[:-1], LINES[-1].replace(b'"sha256":"', b'"sha256":"0')],
    ],
    ids=["lines swapped", "line ends of Windows", "another digest"],
)
def test_edited_lines(edited):
    assert "edited after recording" in str(refused(b"".join(edited)))


def test_lines_lost_or_added():
    body = b"".join(LINES[:-1])
    for count in (len(ENTRIES) - 1, len(ENTRIES) + 1, 0, -1):
        assert "counts" in str(refused(body + records.footer_line(body, count)))
    assert "counts" in str(refused(b"".join([*LINES[:3], *LINES[4:]])))
    assert "counts" in str(refused(b"".join([*LINES[:3], LINES[2], *LINES[3:]])))


@pytest.mark.parametrize(
    ("schema", "word"),
    [(b"2", "newer"), (b"0", "older"), (b"true", "no schema"), (b"1.0", "no schema"), (b'"1"', "no schema")],
)
def test_schema(schema, word):
    assert word in str(refused(CONTENT.replace(b'"schema":1', b'"schema":' + schema)))


def test_a_newer_schema_is_named_even_when_the_rest_cannot_be_read():
    assert "newer" in str(refused(b'{"kind":"header","schema":7,"moved":{}}\nnot a line of this schema'))


@given(st.binary(max_size=200))
def test_junk(content):
    assert refused(content).status == CANNOT_COMPARE


@pytest.mark.parametrize(
    "content",
    [b"\n", b"loss: 0.5\n", b"[1]\n", b"null\n", b"\xff\xfe\n", b'{"schema":1}\n', b"[" * 50_000 + b"\n", LINES[-1]],
)
def test_not_a_record(content):
    refused(content)


@pytest.mark.parametrize(
    "line",
    [
        '{"kind":"metric","name":"a"}',
        '{"kind":"metric","name":"a","value":true}',
        '{"kind":"metric","name":"a","value":null}',
        '{"kind":"metric","name":"a","value":"0.5"}',
        '{"kind":"metric","name":"a","value":"nan"}',
        '{"kind":"metric","name":"a","value":NaN}',
        '{"kind":"metric","name":"a","value":1e999}',
        '{"kind":"metric","name":"a","value":9223372036854775808}',
        '{"kind":"metric","name":"a","value":[0.5]}',
        '{"kind":"metric","name":"a","value":0.5,"step":1.5}',
        '{"kind":"metric","name":"a","value":0.5,"host":"my-laptop"}',
        '{"kind":"metric","name":7,"value":0.5}',
        '{"kind":"series","name":"a","values":0.5}',
        '{"kind":"series","name":"a","values":[0.5,[0.5]]}',
        '{"kind":"claim","name":"a","holds":1,"margin":0.5,"compared":"b"}',
        '{"kind":"claim","name":"a","holds":true,"compared":"b"}',
        '{"kind":"text","name":"a","value":0.5}',
        '{"kind":"figure","name":"a","data":{"panels":[],"alt":"b"}}',
        '{"kind":"picture","name":"a"}',
        '{"name":"a","value":0.5}',
        '{"kind":"end","entries":0,"sha256":""}',
        '"metric"',
        "{",
        "",
        '{"kind":"text","name":"a","value":' + "[" * 5000 + "]" * 5000 + "}",
        b'{"kind":"text","name":"a","value":"\xff"}',
        b'{"kind":"text","name":"a","value":"\\ud800"}',
    ],
)
def test_a_bad_line_is_named(line):
    assert str(refused(signed(line))).startswith("a.jsonl:2: ")


@pytest.mark.parametrize(
    "change",
    [
        {"precision": "float16"},
        {"parameters": {"RATE": [0.5]}},
        {"parameters": {"RATE": None}},
        {"source_sha256": 5},
        {"host": "my-laptop"},
    ],
)
def test_a_bad_header_is_named(change):
    first = {**json.loads(LINES[0]), **change}
    body = json.dumps(first).encode() + b"\n"
    assert str(refused(body + records.footer_line(body, 0))).startswith("a.jsonl:1: ")


OUTSIDE = ["../a", "..", ".", "/etc/a", "a/../b", "a/..", "a//b", "a/", "~", "a\\b", "C:a", "a\n", "a\0", "", "A b"]


@pytest.mark.parametrize("name", [*OUTSIDE, "a" * 101, "é"])
@pytest.mark.parametrize("entry", ENTRIES, ids=lambda entry: type(entry).__name__)
def test_an_entry_cannot_be_named_outside_its_folder(entry, name):
    assert "name" in str(refused(records.encode(header(), [changed(entry, name=name)])))


@pytest.mark.parametrize("field", ["stem", "notebook"])
@pytest.mark.parametrize("name", [*OUTSIDE, "a" * 101])
def test_a_header_cannot_name_a_file_outside_its_folder(field, name):
    assert field in str(refused(records.encode(header(**{field: name}), [])))


def test_a_stem_is_one_name():
    assert "stem" in str(refused(records.encode(header(stem="folder/01_demo"), [])))


@pytest.mark.parametrize("name", ["train/loss", "gradient/step_1e-3", "temperature/loss_0.2", "01_demo", "a-b.c/d"])
def test_names_in_use_are_taken(name):
    assert record(Metric(name, 0.5), notebook=name).entries == (Metric(name, 0.5),)


@given(st.text(alphabet="ab0_./-\\\n~ ", max_size=8))
def test_whatever_name_is_taken_stays_inside(name):
    try:
        record(Text(name, ""))
    except RecordError:
        return
    folder = Path("/recorded")
    path = Path(os.path.normpath(folder / f"{name}.svg"))
    assert path.is_relative_to(folder) and path != folder and "\n" not in name


@pytest.mark.parametrize(
    "twice",
    [
        (Metric("a", 0.5), Metric("a", 0.5)),
        (Metric("a", 0.5), Text("a", "b")),
        (Metric("a", 0.5, step=3), Metric("a", 0.25, step=3)),
    ],
)
def test_an_entry_stands_once(twice):
    assert "stands twice" in str(refused(records.encode(header(), list(twice))))


def test_a_metric_may_be_logged_at_several_steps():
    kept = record(Metric("a", 0.5), Metric("a", 0.5, step=1), Metric("a", 0.5, step=2))
    assert [records.key(entry) for entry in kept.entries] == ["a", "a@1", "a@2"]


@pytest.mark.parametrize(
    ("drawable", "not_drawable", "said"),
    [
        (b'"x":[0,1,2]', b'"x":[0,1]', "2 x values and 3 y values"),
        (b'["left 0","left 1"]', b'["left 0"]', "not 1 rows of 2 columns"),
        (b"[1.0,-0.5]", b"[1.0]", "not 2 rows of 2 columns"),
        (b'["a","b"]', b'["a"]', "2 values for 1 categories"),
        (b'"kind":"bar"', b'"kind":"pie"', "pie"),
    ],
)
def test_a_figure_that_cannot_be_drawn_is_not_read(drawable, not_drawable, said):
    line = records.encode_line(Figure("a", FIGURE)).rstrip()
    assert drawable in line
    assert said in str(refused(signed(line.replace(drawable, not_drawable))))


def test_too_many_entries(monkeypatch):
    monkeypatch.setattr(records, "MAX_ENTRIES", len(ENTRIES))
    records.parse(CONTENT, "a.jsonl")
    monkeypatch.setattr(records, "MAX_ENTRIES", len(ENTRIES) - 1)
    assert "at most" in str(refused(CONTENT))


def test_files_that_are_too_large_or_absent(tmp_path):
    large = tmp_path / "large.jsonl"
    large.touch()
    os.truncate(large, records.MAX_BYTES + 1)
    with pytest.raises(RecordError, match="larger than the 16 MiB"):
        records.read(large)
    for path in (tmp_path / "absent.jsonl", tmp_path):
        with pytest.raises(RecordError, match="cannot be read"):
            records.read(path)


def test_an_endless_file_is_not_read_to_its_end():
    if not Path("/dev/zero").exists():
        pytest.skip("no /dev/zero")
    with pytest.raises(RecordError, match="larger"):
        records.read(Path("/dev/zero"))


def test_a_file_is_read_as_its_bytes_are(tmp_path):
    path = tmp_path / "a.jsonl"
    path.write_bytes(CONTENT)
    assert records.read(path) == records.parse(CONTENT, "")


def test_write(tmp_path):
    path = tmp_path / "new" / "folder" / "a.jsonl"
    records.write_atomically(path, b"first")
    records.write_atomically(path, b"second")
    assert path.read_bytes() == b"second"
    assert list(path.parent.iterdir()) == [path]
    assert stat.S_IMODE(path.stat().st_mode) == 0o644


def test_a_reader_in_between_sees_the_old_file(tmp_path, monkeypatch):
    path, seen = tmp_path / "a.jsonl", []
    path.write_bytes(b"old")
    monkeypatch.setattr(os, "fsync", lambda _: seen.append(path.read_bytes()))
    records.write_atomically(path, b"new")
    assert seen == [b"old"] and path.read_bytes() == b"new"


@pytest.mark.parametrize("error", [OSError(28, "No space left on device"), KeyboardInterrupt()], ids=type)
@pytest.mark.parametrize("step", ["os.fsync", "pathlib.Path.replace", "pathlib.Path.chmod", "os.fdopen"])
def test_a_write_that_breaks_off_leaves_the_old_file_alone(tmp_path, monkeypatch, step, error):
    path = tmp_path / "a.jsonl"
    path.write_bytes(b"old")

    def refuse(*_, **__):
        raise error

    with monkeypatch.context() as patched, pytest.raises(type(error)):
        patched.setattr(step, refuse)
        records.write_atomically(path, b"new")
    assert path.read_bytes() == b"old"
    assert list(tmp_path.iterdir()) == [path]


def test_a_disk_that_is_full_in_the_middle(tmp_path):
    resource = pytest.importorskip("resource")
    path = tmp_path / "a.jsonl"
    path.write_bytes(b"old")
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    # Python ignores the signal, so that the write itself fails, after its first part is on the disk.
    resource.setrlimit(resource.RLIMIT_FSIZE, (100, before[1]))
    try:
        with pytest.raises(OSError):
            records.write_atomically(path, b"x" * 100_000)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert path.read_bytes() == b"old"
    assert list(tmp_path.iterdir()) == [path]
