"""The commands that make committed files again: figures and learner's copies."""

from ..checkout import here
from ..errors import DIFFERS
from .options import NB, Check, out


def figures(nb: NB = "", check: Check = False) -> int:
    """Draw figures/ from the reference record."""
    from .. import recording, records

    checkout = here()
    changed = []
    for path in checkout.sources(nb):
        record = records.read(checkout.reference(path.stem).record("float32"))
        changed += recording.draw_figures(record, checkout.figures, write=not check)
    return _say_changed([f"figures/{path.name}" for path in changed], "figures", check=check)


def notebooks(nb: NB = "", check: Check = False) -> int:
    """Make the learner's copies from notebooks/*.py."""
    from .. import notebooks as sources
    from ..records import write_atomically

    changed = []
    for path in here().sources(nb):
        copy, made = path.with_suffix(".ipynb"), sources.to_bytes(sources.learner(sources.read(path)))
        if not copy.exists() or copy.read_bytes() != made:
            changed.append(f"notebooks/{copy.name}")
            if not check:
                write_atomically(copy, made)
    return _say_changed(changed, "notebooks", check=check)


def _say_changed(changed: list[str], target: str, *, check: bool) -> int:
    if not changed:
        out.print(f"{target}: up to date.", highlight=False)
        return 0
    out.print(f"{target}: {'out of step' if check else 'written'}: {', '.join(changed)}.", highlight=False)
    if check:
        out.print(f"make {target} makes them again.", highlight=False)
    return DIFFERS if check else 0
