"""What a bisection watches: an entry of a notebook, or the fingerprint of a probe, from one JAX release to another."""

import difflib
import re
import subprocess
from typing import Protocol

import msgspec

from . import columns, environment, freshness, noise, notebooks, records
from .checkout import Checkout, RunFolder
from .compare import Difference, compare
from .errors import HarnessError, RunFailed
from .execute import FINISHED
from .leaves import label, leaves
from .matrix import Environments
from .results import hold
from .tasks import kernel_environment

_PROBES = (
    "import json, sys, jax; jax.config.update('jax_enable_x64', sys.argv[1] == 'float64'); "
    "from reproduce import probes; print(json.dumps(probes.fingerprints()))"
)


class Watched(Protocol):
    """Something that a release can move."""

    what: str

    def moved(self, release: str) -> str:
        """How this release has moved it, against the first one; "" where it has not."""
        ...

    def because(self, before: str, after: str) -> str:
        """What is known of the cause, between two releases that were asked about."""
        ...


def watch(checkout: Checkout, text: str, precision: str, first: str, environments: Environments) -> Watched:
    """Watch what a text names, `NN:ENTRY` with or without an index, or `probe:NAME`; `first` is run at once.

    Raises:
        HarnessError: the text has another form, names no single notebook or nothing that `first` logs, or `first`
            cannot be run.
    """
    place, colon, name = text.partition(":")
    if not (colon and place and name):
        raise HarnessError(f"ENTRY={text!r}: expected NN:ENTRY, such as 01:train/loss[3], or probe:NAME.")
    if precision not in records.PRECISIONS:
        raise HarnessError(f"PRECISION={precision!r}: expected {' or '.join(records.PRECISIONS)}.")
    if place == "probe":
        return Probe(checkout, name, precision, first, environments)
    named = checkout.sources(place)
    if len(named) > 1:
        raise HarnessError(f"ENTRY={text!r}: {place!r} names {len(named)} notebooks; name one by its number.")
    return Entry(checkout, notebooks.read(named[0]), name, precision, first, environments)


class Entry:
    """An entry of a notebook, or one number of it, within the noise floors of the reference."""

    def __init__(
        self,
        checkout: Checkout,
        source: notebooks.Source,
        name: str,
        precision: str,
        first: str,
        environments: Environments,
    ):
        self._checkout, self._source, self._precision = checkout, source, precision
        self._environments = environments
        measured = noise.read(checkout.reference(source.stem).noise).precisions.get(precision)
        self._floors = measured.floors if measured else {}
        self._first = records.read(self._run(first).record)
        self._name = _resolved(name, self._first)
        self.what = f"{source.stem} {self._name} in {precision}"

    def moved(self, release: str) -> str:
        """How this release has moved it beyond its floor."""
        result = compare(self._first, records.read(self._run(release).record), self._floors)
        off = [each for each in result.disagreements if _belongs(each.where, self._name)]
        return _in_words(off[0]) if off else ""

    def because(self, before: str, after: str) -> str:
        """The causes of all that differs between two releases, as `compare` names them."""
        good, bad = self._folder(before), self._folder(after)
        made_with = environment.read(good.environment), environment.read(bad.environment)
        held = hold(records.read(good.record), records.read(bad.record), self._floors, made_with, ())
        return "; ".join(f"{cause.kind} ({cause.because})" for cause in held.explanation.causes)

    def _folder(self, release: str) -> RunFolder:
        return columns.of_release(self._checkout, release).run(self._source.stem, self._precision)

    def _run(self, release: str) -> RunFolder:
        isolated, _ = self._environments.ready(release)
        column, folder = columns.of_release(self._checkout, release), self._folder(release)
        asked = ["--nb", self._source.stem, "--precision", self._precision]
        status, complaint = columns.run(column, isolated.python, asked)
        ended = freshness.read_status(folder)
        if status == 0 and ended and ended.outcome.ended == FINISHED:
            return folder
        failed = ended and ended.outcome.ended != FINISHED
        reason = f"{ended.outcome.ended}: {ended.outcome.detail}" if ended and failed else complaint
        raise RunFailed(f"{self._source.stem} does not run under JAX {release}: {reason}")


class Probe:
    """The fingerprint of a probe."""

    def __init__(self, checkout: Checkout, name: str, precision: str, first: str, environments: Environments):
        self._checkout, self._name, self._precision = checkout, name, precision
        self._environments = environments
        known = self._fingerprints(first)
        if name not in known:
            raise HarnessError(f"there is no probe {name!r}; there are {', '.join(sorted(known))}.")
        self._expected = known[name]
        self.what = f"the probe {name} in {precision}"

    def moved(self, release: str) -> str:
        """The new fingerprint, where there is one."""
        found = self._fingerprints(release).get(self._name, "missing")
        return "" if found == self._expected else f"its fingerprint was {self._expected} and is {found}"

    def because(self, before: str, after: str) -> str:
        """Nothing more: a probe is itself what names a cause."""
        return ""

    def _fingerprints(self, release: str) -> dict[str, str]:
        isolated, _ = self._environments.ready(release)
        done = subprocess.run(
            [str(isolated.python), "-c", _PROBES, self._precision],
            # Python looks here first, before PYTHONPATH.
            cwd=self._checkout.root,
            # The settings of a kernel, because a probe's last bits depend on them.
            env={**kernel_environment(), "PYTHONPATH": str(self._checkout.root)},
            capture_output=True,
            text=True,
            check=False,
            stdin=subprocess.DEVNULL,
        )
        try:
            return msgspec.json.decode((done.stdout.splitlines() or [""])[-1], type=dict[str, str])
        except msgspec.DecodeError:
            said = (done.stderr.strip() or "nothing").splitlines()[-1]
            raise RunFailed(f"the probes do not run under JAX {release}: {said}") from None


def _resolved(name: str, record: records.Record) -> str:
    """The name of an entry or number as comparisons give it, where the record has it; an index may count from the end.

    Raises:
        HarnessError: the record does not have it.
    """
    entries = [(records.key(entry), leaves(entry).numbers) for entry in record.entries]
    every = [
        label(key, path, i) for key, numbers in entries for path, group in numbers.items() for i in range(len(group))
    ]
    every += [key for key, _ in entries]
    if from_end := re.fullmatch(r"(.+)\[(-\d+)\]", name):
        group = [each for each in every if re.fullmatch(re.escape(from_end[1]) + r"\[\d+\]", each)]
        if len(group) >= -int(from_end[2]):
            return group[int(from_end[2])]
    if any(_belongs(each, name) for each in every):
        return name
    close = difflib.get_close_matches(name, every, n=3, cutoff=0.3) or [key for key, _ in entries][:3]
    raise HarnessError(f"{record.header.stem} logs no {name!r}; it logs {', '.join(close)}, for example.")


def _belongs(where: str, name: str) -> bool:
    """Whether a difference is one of this entry, or of this very number."""
    return where == name or where.startswith((f"{name}[", f"{name}:", f"{name}."))


def _in_words(difference: Difference) -> str:
    sides = (
        f"{side:.9g}" if isinstance(side, float) else f"{side}" for side in (difference.expected, difference.found)
    )
    size = f" ({difference.floors:.3g} floors)" if difference.floors is not None else ""
    return "{} was {} and is {}{}".format(difference.where, *sides, size)
