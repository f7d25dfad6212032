"""What two runs were made with, side by side: only what is not the same. Pure, and needs no JAX."""

from .environment import Environment

_PLAIN = (
    "python",
    "system",
    "machine",
    "processor",
    "threads",
    "backend",
    "device",
    "x64",
    "threefry_partitionable",
    "matmul_precision",
)

Sides = tuple[str, str]


def differences(expected: dict[str, Environment], found: dict[str, Environment]) -> list[tuple[str, str, str]]:
    """Rows of what, the reference's and the found run's; a precision is named where the other says something else."""
    by_precision = {p: _of_one(expected[p], found[p]) for p in expected if p in found}
    rows = []
    for what in dict.fromkeys(name for each in by_precision.values() for name in each):
        said = {precision: each[what] for precision, each in by_precision.items() if what in each}
        if len(said) == len(by_precision) and len(set(said.values())) == 1:
            rows.append((what, *next(iter(said.values()))))
        else:
            rows += [(f"{what} ({precision})", *sides) for precision, sides in said.items()]
    return rows


def _of_one(expected: Environment, found: Environment) -> dict[str, Sides]:
    rows: dict[str, Sides] = {}
    for group in ("versions", "flags"):
        ours, theirs = getattr(expected, group), getattr(found, group)
        for name in sorted({*ours, *theirs}):
            if ours.get(name) != theirs.get(name):
                rows[name] = (ours.get(name, "none"), theirs.get(name, "none"))
    for name in _PLAIN:
        sides = str(getattr(expected, name)), str(getattr(found, name))
        if sides[0] != sides[1]:
            rows[name.replace("_", " ")] = sides
    only = [
        ", ".join(name for name in one.cpu_features if name not in other.cpu_features)
        for one, other in ((expected, found), (found, expected))
    ]
    if any(only):
        rows["CPU features of one alone"] = (only[0] or "none", only[1] or "none")
    return rows | _probes(expected, found)


def _probes(expected: Environment, found: Environment) -> dict[str, Sides]:
    both = sorted(name for name in expected.probes if name in found.probes)
    moved = [name for name in both if expected.probes[name] != found.probes[name]]
    if not moved:
        return {}
    return {"probes": (f"{len(both)} fingerprints", f"{len(both) - len(moved)} the same; other: {', '.join(moved)}")}
