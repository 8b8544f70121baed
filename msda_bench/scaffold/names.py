"""The names that a new distribution needs, all from the component's."""

from __future__ import annotations

import keyword
import re
from dataclasses import dataclass

from msda_bench.errors import BenchError

_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_]{0,39}")
_HUMP = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")


@dataclass(frozen=True)
class Names:
    """What things are called.

    Attributes:
        kind: which of the seven kinds of component.
        component: as a suite names it, such as inverse_risk.
        class_name: such as InverseRisk.
        distribution: such as msda-bench-inverse-risk; also the folder's.
        suite: of the small suite in it, such as inverse-risk.
    """

    kind: str
    component: str
    class_name: str
    distribution: str
    suite: str

    @classmethod
    def of(cls, kind: str, component: str, suite: str | None = None) -> Names:
        """The names that follow from a component's.

        Args:
            kind: which of the seven kinds of component.
            component: its name.
            suite: in place of the component's name with hyphens; the distribution is called after it.

        Raises:
            BenchError: the name cannot be a component's, a module's and a class's.
        """
        if not _NAME.fullmatch(component):
            raise BenchError(
                f"{component!r} cannot be the name of a component and of a module; use letters, digits and '_', a "
                "letter first, at most 40"
            )
        words = [word for word in _HUMP.sub("_", component).split("_") if word]
        class_name = "".join(word[0].upper() + word[1:] for word in words)
        taken = next((word for word in (component, class_name) if keyword.iskeyword(word)), None)
        if taken:
            raise BenchError(f"{component!r} cannot be used, since {taken} is a keyword of Python; choose another name")
        suite = suite or "-".join(words).lower()
        return cls(kind, component, class_name, f"msda-bench-{suite}", suite)

    @property
    def module(self) -> str:
        """The module to import, such as msda_bench_inverse_risk."""
        return self.distribution.replace("-", "_")
