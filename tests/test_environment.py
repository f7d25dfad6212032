"""What is kept of the machine and the software: enough to find a cause, and nothing that names a person or a host."""

import getpass
import hashlib
import os
import platform
import socket
import sys
from pathlib import Path

import jax
import msgspec
import pytest
from builders import an_environment, both_environments

from reproduce import environment, probes
from reproduce.errors import HarnessError


@pytest.fixture(scope="module")
def captured() -> environment.Environment:
    return environment.capture()


@pytest.fixture(scope="module")
def fingerprints(captured) -> dict[str, str]:
    return captured.probes


def test_what_is_captured(captured):
    assert captured.python == platform.python_version()
    assert captured.versions["jax"] == jax.__version__
    assert (captured.backend, captured.x64, captured.threefry_partitionable) == ("cpu", False, True)
    assert captured.threads >= 1 and captured.processor


def test_it_names_no_host_no_user_and_no_path(captured):
    text = environment.encode(captured).decode()
    for private in (socket.gethostname(), str(Path.home()), sys.prefix, str(Path.cwd()), os.sep + "usr" + os.sep):
        assert len(private) < 3 or private not in text
    assert getpass.getuser() in ("cpu",) or f'"{getpass.getuser()}"' not in text


def test_it_comes_back(captured, tmp_path):
    path = tmp_path / "environment.json"
    path.write_bytes(environment.encode(captured))
    assert environment.read(path) == captured


def test_probes_cover_stream_order_and_gradient(fingerprints):
    assert {name.partition("/")[0] for name in fingerprints} == {
        "random",
        "matmul",
        "exp",
        "logsumexp",
        "softmax",
        "norm",
        "long_sum",
        "convolution",
        "contrastive",
    }
    assert all(len(digest) == 12 and int(digest, 16) >= 0 for digest in fingerprints.values())
    # Equal digests would mean that two probes look at the same thing, or at constants.
    assert len(set(fingerprints.values())) == len(fingerprints)


def test_another_random_stream_moves_the_random_probes(fingerprints, monkeypatch):
    # The other three draws are enough, and each takes long to compile.
    for name in ("normal", "permutation", "randint"):
        monkeypatch.setattr(jax.random, name, lambda key, *_: jax.random.key_data(key))
    jax.config.update("jax_threefry_partitionable", False)
    try:
        other = probes._random()
    finally:
        jax.config.update("jax_threefry_partitionable", True)
    digests = {name: hashlib.sha256(value.tobytes()).hexdigest()[:12] for name, value in other.items()}
    for name in ("random/bits", "random/uniform", "random/split"):
        assert digests[name] != fingerprints[name]


@pytest.mark.usefixtures("x64")
def test_probes_run_in_the_precision_that_is_set():
    assert str(probes._inputs(2, 3).dtype) == "float64"


def test_flags_are_what_steers_jax(monkeypatch):
    for name in list(os.environ):
        if name.startswith(("JAX_", "XLA_")):
            monkeypatch.delenv(name)
    monkeypatch.setenv("XLA_FLAGS", "--xla_a")
    monkeypatch.setenv("JAX_PLATFORMS", "cpu")
    monkeypatch.setenv("JAX_EMPTY", "")
    monkeypatch.setenv("MY_JAX_TOKEN", "secret")
    assert environment.flags() == {"JAX_PLATFORMS": "cpu", "XLA_FLAGS": "--xla_a"}


def test_versions_leave_out_what_is_not_installed(monkeypatch):
    monkeypatch.setattr(environment, "PACKAGES", ("jax", "no-such-package"))
    assert environment.versions() == {"jax": jax.__version__}


def test_the_day_does_not_count():
    assert environment.same(an_environment(), an_environment(date="2031-01-01"))
    for change in ({"python": "3.12.0"}, {"flags": {"XLA_FLAGS": "a"}}, {"threads": 3}, {"probes": {}}):
        assert not environment.same(an_environment(), an_environment(**change))


def test_a_run_is_described_by_day_release_and_device():
    assert environment.describe(an_environment()) == "recorded 2030-01-02 with JAX 0.0.0 on cpu (A processor)"


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"{}",
        b"[]",
        b"\xff",
        environment.encode(an_environment()),
        environment.encode_recorded(both_environments())[:-30],
        environment.encode_recorded({"float32": an_environment()}),
        environment.encode_recorded({**both_environments(), "float16": an_environment()}),
        environment.encode_recorded(both_environments()).replace(b'"machine"', b'"host"'),
    ],
)
def test_damaged_files(tmp_path, content):
    (tmp_path / "ENVIRONMENT.json").write_bytes(content)
    with pytest.raises(HarnessError, match=r"ENVIRONMENT\.json.*Record again"):
        environment.read_recorded(tmp_path)


def test_a_recorded_file_comes_back(tmp_path):
    content = environment.encode_recorded(both_environments())
    (tmp_path / "ENVIRONMENT.json").write_bytes(content)
    assert environment.read_recorded(tmp_path) == both_environments()
    # Sorted and indented: a change of one version is a change of one line.
    later = environment.encode_recorded(both_environments(python="3.12.0"))
    assert [a == b for a, b in zip(content.splitlines(), later.splitlines(), strict=True)].count(False) == 2


def test_a_missing_file(tmp_path):
    with pytest.raises(HarnessError, match="not a readable environment"):
        environment.read(tmp_path / "environment.json")


def test_the_kernel_writes_where_the_harness_asked(tmp_path, monkeypatch):
    monkeypatch.setattr(environment, "capture", an_environment)
    monkeypatch.setenv(environment.TARGET_VARIABLE, str(tmp_path / "environment.json"))
    monkeypatch.setenv(environment.PREFIX_VARIABLE, sys.prefix)
    environment.write_from_kernel()
    assert environment.read(tmp_path / "environment.json") == an_environment()


def test_a_kernel_of_another_installation_is_refused(tmp_path, monkeypatch):
    monkeypatch.setenv(environment.TARGET_VARIABLE, str(tmp_path / "environment.json"))
    monkeypatch.setenv(environment.PREFIX_VARIABLE, str(tmp_path))
    with pytest.raises(HarnessError, match="start both from one environment"):
        environment.write_from_kernel()
    assert list(tmp_path.iterdir()) == []


def test_processors_are_read_as_far_as_the_system_tells(tmp_path, monkeypatch):
    name, features = environment.processor()
    assert name and set(features) <= set(environment.FEATURES)

    def refuse(*_, **__):
        raise FileNotFoundError

    monkeypatch.setattr(Path, "read_text", refuse)
    assert environment.processor()[1] == [] and environment.processor()[0]


def test_form():
    assert msgspec.json.decode(environment.encode(an_environment()))["date"] == "2030-01-02"


@pytest.mark.parametrize(
    ("flags", "left"),
    [
        ("", ["sse4_2", "avx", "avx2", "fma", "avx512f", "asimd"]),
        ("--xla_cpu_max_isa=SSE4_2", ["sse4_2", "asimd"]),
        ("--xla_other=1 --xla_cpu_max_isa=avx2 --xla_more", ["sse4_2", "avx", "avx2", "fma", "asimd"]),
        ("--xla_cpu_max_isa=SSE4_2 --xla_cpu_max_isa=AVX", ["sse4_2", "avx", "asimd"]),
        ("--xla_cpu_max_isa=unheard_of", ["sse4_2", "avx", "avx2", "fma", "avx512f", "asimd"]),
    ],
)
def test_instruction_sets_that_the_flags_leave(flags, left):
    assert environment.usable(["sse4_2", "avx", "avx2", "fma", "avx512f", "asimd"], flags) == left
