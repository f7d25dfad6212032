"""A judgement, and how it is shown: as text in a terminal, as HTML in Jupyter."""

import html
import re
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from contrastive_jax.exercises import shown
from contrastive_jax.exercises.contracts import Arguments, Contract, Variant
from contrastive_jax.exercises.subject import Finding

PRINTED_SHOWN = 80
GOOD, BAD = "#2e9e5b", "#d1495b"  # both readable on white and on black
_BOX = "border-left: 4px solid {colour}; padding: 0.2em 0.8em; margin: 0.3em 0; max-width: 60em"
_CODE = (
    "background: rgba(127, 127, 127, 0.15); padding: 0.4em 0.7em; overflow-x: auto; white-space: pre; "
    "font-family: monospace"
)


class Printed(NamedTuple):
    """How much a function printed, and how that began."""

    size: int = 0
    beginning: str = ""


NOTHING_PRINTED = Printed()


@dataclass(frozen=True, eq=False, repr=False)
class Judgement:
    """What the judge found about one function or answer.

    Attributes:
        name: The exercise.
        findings: All checks that were made, in order. Unless all were asked for, the first that failed is the last.
        diagnoses: Known mistakes that behave exactly like the function; empty if none does, or none was looked for.
        contract: What it was held to; None for an answer among several.
        remark: One more sentence.
        printed: What the function printed.
        verbose: Whether all checks are shown.
    """

    name: str
    findings: tuple[Finding, ...]
    diagnoses: tuple[Variant, ...] = ()
    contract: Contract | None = None
    remark: str = ""
    printed: Printed = NOTHING_PRINTED
    verbose: bool = False

    @property
    def passed(self) -> bool:
        return all(finding.passed for finding in self.findings)

    @property
    def failing(self) -> Finding | None:
        """The first check that failed."""
        return next((finding for finding in self.findings if not finding.passed), None)

    @property
    def arguments(self) -> Arguments | None:
        """The input of the first check that failed."""
        return None if self.failing is None else self.failing.arguments

    def __repr__(self) -> str:
        return "\n".join(_as_text(block) for block in _blocks(self))

    def _repr_html_(self) -> str:
        style = _BOX.format(colour=GOOD if self.passed else BAD)
        return f'<div style="{style}">{"".join(_as_html(block) for block in _blocks(self))}</div>'


class Block(NamedTuple):
    """A sentence, or lines that stand as they are; `kind` is "head", "sentence" or "code"."""

    kind: str
    lines: list[str]


def _blocks(judgement: Judgement) -> list[Block]:
    failing = judgement.failing
    blocks = [Block("head", [_head(judgement)])]
    if failing is not None:
        blocks.append(Block("sentence", [failing.problem]))
        if judgement.contract is not None:
            blocks += _evidence(judgement.contract, failing)
            blocks += _diagnosis(judgement, judgement.contract)
    if judgement.remark:
        blocks.append(Block("sentence", [judgement.remark]))
    if judgement.printed.size:
        blocks.append(Block("sentence", [_printed(judgement.printed)]))
    if judgement.verbose:
        blocks.append(Block("code", [_check_line(finding) for finding in judgement.findings]))
    return blocks


def _head(judgement: Judgement) -> str:
    failing, count = judgement.failing, len(judgement.findings)
    if judgement.contract is None:
        return f"{'✔' if failing is None else '✘'} {judgement.name}"
    if failing is None:
        return f"✔ {judgement.name} passes all {count} checks."
    return f"✘ {judgement.name} does not pass yet: check {judgement.findings.index(failing) + 1}, {failing.check}."


def _evidence(contract: Contract, failing: Finding) -> list[Block]:
    blocks = []
    if failing.arguments is not None:
        lines = shown.call_lines(contract, failing.arguments)
        blocks.append(Block("code", lines))
        if any("..." in line for line in lines):
            blocks.append(Block("sentence", ["The input is the attribute `arguments` of what `judge` gives back."]))
    if failing.found is not None and failing.expected is not None:
        blocks.append(Block("code", _numbers(failing.found, failing.expected)))
    return blocks


def _numbers(found: np.ndarray, expected: np.ndarray) -> list[str]:
    rows = [("yours", shown.number(found)), ("expected", shown.number(expected))]
    off = shown.difference(found, expected)
    rows += [("difference", off)] if off else []
    indent = "\n" + " " * 12
    return [f"{name:10s}  {text}".replace("\n", indent) for name, text in rows]


def _diagnosis(judgement: Judgement, contract: Contract) -> list[Block]:
    failing = judgement.failing
    if failing is None or not failing.numeric or failing.final or not contract.variants:
        return []
    mistakes = [_mistake(each) for each in judgement.diagnoses]
    if not mistakes:
        none = f"It behaves like none of the {len(contract.variants)} mistakes known here."
        return [] if judgement.remark else [Block("sentence", [none])]
    if len(mistakes) == 1:
        return [Block("sentence", [f"It behaves exactly like a known mistake, {mistakes[0]}"])]
    return [
        Block("sentence", [f"It behaves exactly like {len(mistakes)} known mistakes."]),
        *(Block("sentence", [f"Either {each}" if not i else f"or {each}"]) for i, each in enumerate(mistakes)),
    ]


def _mistake(variant: Variant) -> str:
    # GitHub leads from here to a pull request of this number, too.
    address = f"github.com/{variant.report.replace('#', '/issues/')}"
    seen = f" Seen in practice: {address}." if variant.report else ""
    return f"`{variant.name}`: {variant.explanation}{seen}"


def _printed(printed: Printed) -> str:
    beginning = printed.beginning.strip()
    cut = " ..." if printed.size > PRINTED_SHOWN or len(beginning) > PRINTED_SHOWN else ""
    return f"While it was judged it printed {printed.size} characters: {beginning[:PRINTED_SHOWN]!r}{cut}"


def _check_line(finding: Finding) -> str:
    return f"✔ {finding.check}" if finding.passed else f"✘ {finding.check}: {finding.problem}"


def _as_text(block: Block) -> str:
    indent = {"head": "", "sentence": "  ", "code": "      "}[block.kind]
    return "\n".join(indent + line for line in "\n".join(block.lines).split("\n"))


def _as_html(block: Block) -> str:
    text = html.escape("\n".join(block.lines))
    if block.kind == "code":
        return f'<pre style="{_CODE}">{text}</pre>'
    text = re.sub(r"`([^`]+)`", r"<code>\1</code>", text)
    return f"<p><strong>{text}</strong></p>" if block.kind == "head" else f"<p>{text}</p>"
