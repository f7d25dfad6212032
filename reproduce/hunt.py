"""Finds the first JAX release that moves what is watched, by bisection of the published releases."""

from collections.abc import Callable
from dataclasses import dataclass, field

from .errors import AGREES, DIFFERS, HarnessError


@dataclass(frozen=True)
class Found:
    """Where a search ended: the neighbours between which something moved, and how; no `moved` where both ends agree.

    `skipped` are the releases between these neighbours that could not be tested, and why.
    """

    before: str
    after: str
    moved: str = ""
    skipped: dict[str, str] = field(default_factory=dict)

    @property
    def status(self) -> int:
        """The exit status, as of a comparison of both ends."""
        return DIFFERS if self.moved else AGREES

    def sentence(self, what: str) -> str:
        """The one sentence that says how it went."""
        if not self.moved:
            return f"No difference: JAX {self.before} and JAX {self.after} agree on {what}."
        untested = ", ".join(self.skipped)
        either = (
            f"JAX {self.after}, or one of those that could not be tested ({untested}), is"
            if untested
            else (f"JAX {self.after} is")
        )
        return f"{either} the first that moves {what}: {self.moved}. JAX {self.before} is the last that agrees."


def search(among: list[str], moved: Callable[[str], str], say: Callable[[str], None]) -> Found:
    """Narrow down which release first moved something.

    Args:
        among: releases in order of age; the first is the one that the others are held against.
        moved: how a release has moved it, "" where it has not.
        say: told of each release what was found.

    Raises:
        HarnessError: `moved` raised it for the last release. For one between the ends it means that this release cannot
            be tested, and is passed over.
    """
    low, high, skipped = 0, len(among) - 1, {}
    how = moved(among[high])
    say(f"JAX {among[high]}: {how or 'agrees'}")
    if not how:
        return Found(among[low], among[high])
    while between := [release for release in among[low + 1 : high] if release not in skipped]:
        middle = between[len(between) // 2]
        try:
            found = moved(middle)
        except HarnessError as error:
            skipped[middle] = str(error)
            say(f"JAX {middle}: passed over, because {error}")
            continue
        say(f"JAX {middle}: {found or 'agrees'}")
        if found:
            high, how = among.index(middle), found
        else:
            low = among.index(middle)
    return Found(among[low], among[high], how, {name: skipped[name] for name in among[low + 1 : high]})
