"""A console that shows what others wrote and obeys none of it: signs that steer a terminal are shown as a mark."""

from typing import Any

from rich.console import Console
from rich.text import Text

MARK = "\N{REPLACEMENT CHARACTER}"


def harmless(text: str) -> str:
    """A text in which everything that is not printed, but for line ends and tabs, is a mark.

    >>> harmless("a title: \\x1b]0;gone\\x07")
    'a title: �]0;gone�'
    """
    return "".join(sign if sign.isprintable() or sign in "\n\t" else MARK for sign in text)


class Terminal(Console):
    """A rich console for texts that may come from a stranger's record."""

    def render_str(self, text: str, **options: Any) -> Text:
        """Make a text of every string that is printed, alone or in a table."""
        return super().render_str(harmless(text), **options)
