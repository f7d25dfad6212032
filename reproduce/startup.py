"""What the harness's own processes do first, before they import the notebook libraries."""

import sys


def spare_the_slow_import() -> None:
    """Keep jsonschema, which nbformat imports, from building a grammar of internationalised web addresses.

    That takes longer than everything else together, about a second in each process, and no schema of a notebook asks
    for such an address. Where the package cannot be imported, jsonschema leaves that one check out.

    >>> spare_the_slow_import()
    """
    sys.modules.setdefault("rfc3987_syntax", None)  # pyright: ignore[reportArgumentType, reportCallIssue]
