"""Which JAX releases there are to compare, in which order they came, and which Python each of them runs on."""

import re
import subprocess
import sys

from .errors import HarnessError

# Each brought a change of its own: the compiler's runtime, the random stream, automatic differentiation, reductions.
MATRIX = ("0.4.30", "0.4.38", "0.5.3", "0.6.2", "0.7.2", "0.8.3", "0.9.2", "0.10.2", "0.12.0.1")
OLDEST = MATRIX[0]
# JAX 0.11.0 gave up Python 3.11.
_NEWER_PYTHON = "0.11.0"
_FORM = re.compile(r"\d+(\.\d+){2,3}")


def order(release: str) -> tuple[int, ...]:
    """A key that sorts releases by age.

    >>> sorted(["0.10.2", "0.9.2", "0.9.0.1"], key=order)
    ['0.9.0.1', '0.9.2', '0.10.2']
    """
    return tuple(int(part) for part in release.split("."))


def checked(release: str) -> str:
    """The release itself, where it is one that the packages run on.

    Raises:
        HarnessError: it is not written like one, or older than the packages need.
    """
    if not _FORM.fullmatch(release):
        raise HarnessError(f"{release!r} is no JAX release; expected one like {OLDEST} or {MATRIX[-1]}.")
    if order(release) < order(OLDEST):
        raise HarnessError(f"JAX {release} is too old; the packages need {OLDEST} or newer.")
    return release


def chosen(text: str) -> list[str]:
    """The releases that a text names, oldest first; all of the matrix where it names none.

    Raises:
        HarnessError: a name is not that of a release.
    """
    named = {checked(release) for release in re.split(r"[\s,]+", text) if release}
    return sorted(named or MATRIX, key=order)


def pythons(release: str) -> tuple[str, ...]:
    """The Python versions that a release is run on, the preferred one first: one for all where it can be."""
    return ("3.12", "3.13") if order(release) >= order(_NEWER_PYTHON) else ("3.11",)


def between(first: str, last: str) -> list[str]:
    """The published releases from `first` to `last`, oldest first, as the package index in use has them.

    Raises:
        HarnessError: the ends are no releases in order of age, or the index does not answer or lacks an end.
    """
    if order(checked(first)) >= order(checked(last)):
        raise HarnessError(f"FROM={first} TO={last}: expected an older release first, and then a newer one.")
    known = parse(_ask_pip())
    for end in (first, last):
        if end not in known:
            newest = ", ".join(sorted(known, key=order)[-5:]) or "none"
            raise HarnessError(f"JAX {end} is not among the published releases; the newest are {newest}.")
    return sorted((each for each in known if order(first) <= order(each) <= order(last)), key=order)


def parse(answer: str) -> set[str]:
    """The releases in pip's answer. What was withdrawn is not in it, and pre-releases have another form."""
    listed = re.search(r"^Available versions:(.*)$", answer, re.MULTILINE)
    return {each for each in re.split(r"[\s,]+", listed[1]) if _FORM.fullmatch(each)} if listed else set()


def _ask_pip() -> str:
    # Of releases for another Python than this one, pip says nothing by itself.
    command = [sys.executable, "-m", "pip", "index", "versions", "jax", "--ignore-requires-python"]
    answer = subprocess.run(command, capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL)
    if answer.returncode:
        said = (answer.stderr.strip() or "nothing").splitlines()[-1]
        raise HarnessError(
            f"pip could not list the releases of JAX; it said: {said}. Check that {sys.executable} has pip and the "
            "network, and run again."
        )
    return answer.stdout
