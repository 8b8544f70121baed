"""Commands to a smart home in ten languages."""

from __future__ import annotations

import itertools
import json
import zlib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import numpy as np
from pydantic import Field

from msda_bench.api import Count, Dataset, DomainData, File, Files, InputSpec, Pip, Size, Task, component
from msda_bench_builtin.datasets.features import Draws
from msda_bench_builtin.datasets.unpacked import reading, zip_member

if TYPE_CHECKING:
    from scipy.sparse import csr_matrix

_LANGUAGES = ("en", "de", "fr", "es", "it", "nl", "pt-BR", "pl", "ru", "fi")
# Those with the most templates in the language that has the fewest.
_INTENTS = (
    "HassTurnOn", "HassTurnOff", "HassLightSet", "HassGetState", "HassClimateGetTemperature",
    "HassClimateSetTemperature", "HassStartTimer", "HassIncreaseTimer", "HassDecreaseTimer", "HassPauseTimer",
    "HassUnpauseTimer", "HassCancelTimer", "HassTimerStatus", "HassMediaNext", "HassMediaPrevious",
)  # fmt: skip
_FILE = File(
    "intents/home_assistant_intents-2026.10.27-py3-none-any.whl",
    "256eb1e4fc6e6f4943d0ba4e089c9639d74d0e9d62ccddeb7148bc168de55e40",
    775094,
    Pip("home-assistant-intents", "2026.10.27"),
)
_TURNS = 40
"""How often each template is used at most."""
_CHOICES = 1000
"""Numbers for the choices within a sentence."""
_LEFT_OUT = 0.5
"""How often a part in square brackets is left out."""


@component
class Intents(Dataset):
    """What a sentence asks of a smart home, one of 15 intents, in ten languages: counts of groups of characters.

    Sentences are made from the templates of Home Assistant, whose alternatives and words are drawn from a fixed stream.
    The sentences of one template are a group of a split.

    Parameters:
        per_intent: sentences of each intent in each language.
        columns: of the bag of groups of characters, which share a column if their checksums agree.
        longest: characters in the longest group; groups have two or more.

    The Home Assistant Authors. Intents for Home Assistant.
    """

    name = "intents"
    version = 1
    licence = "Apache-2.0"
    modality = "text"
    source = "the Home Assistant Authors, from the wheel home-assistant-intents 2026.10.27"
    domains = _LANGUAGES
    task = Task("classification", len(_INTENTS))
    files = (_FILE,)

    train: Size = 0.5
    per_intent: Annotated[int, Field(ge=2, le=1000)] = 30
    columns: Count = 4096
    longest: Annotated[int, Field(ge=2, le=6)] = 4

    @property
    def input(self) -> InputSpec:
        """A bag of groups of characters."""
        return InputSpec((self.columns,), sparse=True)

    @property
    def notes(self) -> tuple[str, ...]:
        """What the groups are."""
        return ("intents: split by template: no template whose sentences are tested is trained on.",)

    def sizes(self, files: Files | None = None) -> dict[str, int]:
        """Sentences in each language."""
        return dict.fromkeys(_LANGUAGES, len(_INTENTS) * self.per_intent)

    def load(self, domain: str, files: Files) -> DomainData:
        """The sentences in one language, CSR float32 (n, columns), intent by intent."""
        made = sentences(files.path(_FILE), domain, self.per_intent)
        x = character_counts([sentence.text for sentence in made], self.columns, self.longest)
        groups = np.array([sentence.template for sentence in made])
        return DomainData(x, np.array([sentence.intent for sentence in made]), groups=groups)


class Sentence(NamedTuple):
    """A sentence, the number of its intent, and the name of its template."""

    text: str
    intent: int
    template: str


def character_counts(texts: Sequence[str], columns: int, longest: int) -> csr_matrix:
    """Counts the groups of 2 to `longest` characters; a text begins and ends with a space.

    Returns:
        CSR (n, columns) float32 with sorted indices; the column of a group is its CRC-32 modulo `columns`.
    """
    from scipy.sparse import csr_matrix

    places: list[int] = []
    ends = [0]
    for text in texts:
        padded = f" {text.lower()} "
        for length in range(2, longest + 1):
            for start in range(len(padded) - length + 1):
                places.append(zlib.crc32(padded[start : start + length].encode()) % columns)
        ends.append(len(places))
    indices = np.array(places, np.int32)
    ones = np.ones(len(indices), np.float32)
    counts = csr_matrix((ones, indices, np.array(ends, np.int32)), shape=(len(texts), columns))
    counts.sum_duplicates()
    return counts


def sentences(path: Path, language: str, per_intent: int) -> list[Sentence]:
    """Different sentences, as many of each intent, from its templates in turn.

    Raises:
        DataError: the file is damaged or holds other contents, or there are not so many sentences.
    """
    member = f"home_assistant_intents/data/{language}.json"
    with reading(path, f"{member}: not the expected sentences", "run `msda-bench data fetch intents`"):
        with zip_member(path, member) as stream:
            grammar = _Grammar.of(json.loads(stream.read()))
        return list(_drawn(grammar, language, per_intent))


def _drawn(grammar: _Grammar, language: str, per_intent: int) -> Iterator[Sentence]:
    for place, intent in enumerate(_INTENTS):
        templates = grammar.templates[intent]
        draws = Draws(("intents", Intents.version, language, intent))
        order = np.argsort(draws.uniform("order", (len(templates),))).tolist()
        said: set[str] = set()
        for turn, number in itertools.product(range(_TURNS), order):
            if len(said) == per_intent:
                break
            drawn = draws.uniform(f"{number} {turn}", (_CHOICES,)).tolist()
            text = grammar.say(templates[number], iter(drawn))
            if text not in said:
                said.add(text)
                yield Sentence(text, place, f"{language} {intent} {number}")
        if len(said) < per_intent:
            raise ValueError(f"{intent} has only {len(said)} different sentences; lower per_intent")


class _Grammar(NamedTuple):
    """The templates of a language: `turn[ing] on (the|my) {colour:slot} <light>`, or `(first;second)` in any order."""

    templates: Mapping[str, Sequence[str]]
    rules: Mapping[str, str]
    lists: Mapping[str, Mapping[str, Any]]
    words: Sequence[str]
    """The values of all lists, for slots that any words may fill."""

    @classmethod
    def of(cls, held: Mapping[str, Any]) -> _Grammar:
        templates: dict[str, list[str]] = {}
        for intent in _INTENTS:
            templates[intent] = []
            for part in held["intents"][intent]["data"]:
                templates[intent] += part["sentences"]
        words: list[str] = []
        for values in held["lists"].values():
            words += [value["in"] for value in values.get("values", ())]
        return cls(templates, held["expansion_rules"], held["lists"], words)

    def say(self, template: str, drawn: Iterator[float]) -> str:
        """A sentence of a template; `drawn` are numbers in (0, 1)."""
        text, end = self._one_of(template, 0, "", drawn)
        if end != len(template):
            raise ValueError(f"{template!r} ends early")
        return " ".join(text.split())

    def _one_of(self, template: str, at: int, close: str, drawn: Iterator[float]) -> tuple[str, int]:
        """One of the alternatives from a place to the closing bracket, or all of a permutation, and the place."""
        choices = [""]
        permuted = False
        while at < len(template) and template[at] != close:
            mark = template[at]
            at += 1
            if mark in "|;":
                choices.append("")
                permuted |= mark == ";"
                continue
            text, at = self._part(template, mark, at, drawn)
            choices[-1] += text
        if permuted:
            keys = [next(drawn) for _ in choices]
            return " ".join(choices[place] for place in np.argsort(keys)), at
        return choices[int(next(drawn) * len(choices))], at

    def _part(self, template: str, mark: str, at: int, drawn: Iterator[float]) -> tuple[str, int]:
        """A bracket, or a character."""
        if mark in "([":
            close = ")" if mark == "(" else "]"
            text, end = self._one_of(template, at, close, drawn)
            template.index(close, end)
            return text if mark == "(" or next(drawn) > _LEFT_OUT else "", end + 1
        if mark in "{<":
            end = template.index("}" if mark == "{" else ">", at)
            name = template[at:end].partition(":")[0]
            inner = self._value(name, drawn) if mark == "{" else self.rules[name]
            return self._one_of(inner, 0, "", drawn)[0], end + 1
        return mark, at

    def _value(self, name: str, drawn: Iterator[float]) -> str:
        """A value of a slot: from its list, a whole number of its range, or any words of the language."""
        known = self.lists.get(name, {})
        numbers = known.get("range")
        if numbers:
            span = range(numbers["from"], numbers["to"] + 1, numbers.get("step", 1))
            return str(span[int(next(drawn) * len(span))])
        values = [value["in"] for value in known.get("values", ())] or self.words
        return values[int(next(drawn) * len(values))]
