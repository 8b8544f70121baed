"""Reads a page as a browser does."""

import base64
import gzip
import hashlib
import json
import re
from html.parser import HTMLParser

EMPTY = {"meta", "link", "input", "br", "img", "hr"}


class Page(HTMLParser):
    """Collects elements in order, text by element, and whether every element was closed."""

    def __init__(self, text):
        super().__init__()
        self.source = text
        self.elements = []
        self.open = []
        self.text = []
        self.scripts = []
        self.specs = []
        self.style = ""
        self.feed(text)
        self.close()

    def handle_starttag(self, tag, attrs):
        self.handle_startendtag(tag, attrs)
        if tag not in EMPTY:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.elements.append((tag, {key: value or "" for key, value in attrs}))

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        if self.open and self.open[-1] == "script":
            kind = self.elements[-1][1].get("type", "")
            if "gzip" in kind:  # which our script unpacks
                data = gzip.decompress(base64.b64decode(data)).decode()
            if "json" in kind:
                self.specs.append(json.loads(data))
            else:
                self.scripts.append(data)
        elif self.open and self.open[-1] == "style":
            self.style = data
        else:
            self.text.append(data)

    def values(self, name):
        return [attributes[name] for _, attributes in self.elements if name in attributes]

    @property
    def said(self):
        return " ".join(" ".join(self.text).split())

    @property
    def figures(self):
        return [attributes["id"] for tag, attributes in self.elements if tag == "figure"]

    def check(self):
        """It is complete, all scripts and styles are ours, and it loads nothing."""
        assert self.open == []
        for link in [*self.values("href"), *self.values("src"), *self.values("xlink:href")]:
            assert re.match(r"#|data:|\.\./|https://arxiv\.org/abs/|[\w-]+/?[\w-]*\.", link), link
        assert not {"base", "iframe", "object", "embed", "form", "img", "i", "u"} & {tag for tag, _ in self.elements}
        names = {name for _, attributes in self.elements for name in attributes}
        assert not any(name.startswith("on") or name == "style" for name in names)
        (policy,) = [attributes["content"] for tag, attributes in self.elements if attributes.get("http-equiv")]
        rules = dict(rule.split(" ", 1) for rule in policy.split("; "))
        assert rules["default-src"] == "'none'"
        assert set(rules["script-src"].split()) == set(map(_digest, self.scripts))
        assert rules["style-src"] == _digest(self.style)
        text = re.sub(r"(?s)<script>.*?</script>", "", self.source)
        assert text.replace("\n", "").replace("\N{NO-BREAK SPACE}", "").isprintable()


def _digest(text):
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"
