"""Numbers in prose against the record: every decimal a learner reads names the entry it quotes.

A tie is an HTML comment right behind the number, invisible on the page: `0.564<!-- record: train/loss[0] -->` or
`0.2<!-- parameter: TEMPERATURE -->`. Outside the notebook the entry is preceded by the notebook's number:
`<!-- record: 01:train/loss[0] -->`. The digits must be the correct rounding of the recorded value in every precision.
"""

import re
from collections.abc import Iterator, Mapping
from decimal import Decimal, InvalidOperation

from .leaves import label, leaves
from .records import Record, Series, key

TIE = re.compile(
    r"(?P<number>[-\u2212+]?\d[\d,]*(?:\.\d+)?)(?P<close>[\s*_$)%]*)"
    r"<!--\s*(?P<kind>record|parameter):\s*(?:(?P<notebook>\d\d):)?(?P<name>.+?)\s*-->"
)
LOOSE_TIE = re.compile(r"<!--\s*(?:record|parameter):.*?-->")
# What may hold digits without being a number that a run produced.
NOT_PROSE = re.compile(
    r"```.*?```|``[^\n]*?``|`[^`\n]*`|<!--.*?-->|\]\([^)]*\)|https?://\S+|\b\d+\.\d+\.[\d.]+|\b\d{4}\.\d{4,5}\b",
    re.DOTALL,
)
DECIMAL = re.compile(r"\d*\.\d+")

Values = Mapping[str, int | float | str | bool]


def values(record: Record) -> dict[str, int | float | str | bool]:
    """Every number of a record by its label; series count from the end too, as `train/loss[-1]`."""
    found: dict[str, int | float | str | bool] = {}
    for entry in record.entries:
        for path, numbers in leaves(entry).numbers.items():
            for index, value in enumerate(numbers):
                found[label(key(entry), path, index)] = value
                if isinstance(entry, Series):
                    found[label(key(entry), path, index - len(numbers))] = value
    return found


def problems(text: str, records: Mapping[str, list[Record]], own: str = "", *, strict: bool = True) -> Iterator[str]:
    """What is wrong with the numbers in a text.

    Args:
        text: Markdown.
        records: records by notebook number ("01"), one for each precision.
        own: number of the notebook that the text belongs to, for ties that name none.
        strict: whether a decimal without a tie is a problem too.
    """
    for match in TIE.finditer(text):
        notebook = match["notebook"] or own
        if notebook not in records:
            yield f"{match[0]!r}: no record of notebook {notebook or '(none named)'}"
            continue
        for record in records[notebook]:
            yield from _check(match, record)
    untied = TIE.sub("", text)
    yield from (f"{loose!r}: no number stands before this tie" for loose in LOOSE_TIE.findall(untied))
    if strict:
        # The tied numbers are gone, so what is left has no entry to be held against.
        for number in DECIMAL.findall(NOT_PROSE.sub(" ", untied)):
            yield f"{number}: a decimal without a tie to a record entry or a parameter"


def _check(match: re.Match, record: Record) -> Iterator[str]:
    known: Values = record.header.parameters if match["kind"] == "parameter" else values(record)
    value = known.get(match["name"])
    if value is None or isinstance(value, str | bool):
        yield f"{match[0]!r}: the {record.header.precision} record has no number {match['name']!r}"
        return
    quoted = match["number"].replace("\u2212", "-").replace(",", "")
    shown = value * 100 if "%" in match["close"] else value
    if not _rounds_to(shown, quoted):
        yield f"{match['name']}: the text says {quoted}, the {record.header.precision} record {shown!r}"


def _rounds_to(value: float, quoted: str) -> bool:
    try:
        number = Decimal(quoted)
        exponent = number.as_tuple().exponent
        assert isinstance(exponent, int)
        return Decimal(value).quantize(Decimal(1).scaleb(exponent)) == number
    except InvalidOperation:
        return False
