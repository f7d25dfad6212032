"""A page as a test sees it: its elements, its text, and whatever could run or be fetched."""

import html.parser

NASTY = "</pre><script>alert(1)</script><img src=x onerror=alert(2)> {{ 7 * 7 }} & \"quoted\" 'too'"


class Page(html.parser.HTMLParser):
    """The elements of a page, and its text."""

    def __init__(self, content: bytes):
        super().__init__()
        self.elements: list[tuple[str, dict]] = []
        self.text = ""
        self.feed(content.decode())

    def handle_starttag(self, tag, attrs):
        self.elements.append((tag, dict(attrs)))

    def handle_data(self, data):
        self.text += data

    def flat(self) -> str:
        return " ".join(self.text.split())

    def outside(self) -> list[str]:
        """Every address that is not in the page itself."""
        named = [
            value for _, attributes in self.elements for name, value in attributes.items() if name in ("src", "href")
        ]
        return [address for address in named if not address.startswith(("data:", "#"))]

    def running(self) -> list[str]:
        """Whatever could run."""
        handlers = [name for _, attributes in self.elements for name in attributes if name.startswith("on")]
        return handlers + [tag for tag, _ in self.elements if tag in ("script", "iframe", "object", "embed", "form")]
