"""The names in a new distribution, all derived from the component's name."""

from __future__ import annotations

import keyword
import re
from dataclasses import dataclass

from msda_bench.errors import BenchError

_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_]{0,39}")
_HUMP = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")


@dataclass(frozen=True)
class Names:
    """The names in a new distribution.

    Attributes:
        kind: one of the seven kinds of component.
        component: the component's name in suites, such as inverse_risk.
        class_name: the component's class, such as InverseRisk.
        distribution: the distribution and its folder, such as msda-bench-inverse-risk.
        suite: the small suite in the distribution, such as inverse-risk.
    """

    kind: str
    component: str
    class_name: str
    distribution: str
    suite: str

    @classmethod
    def of(cls, kind: str, component: str, suite: str | None = None) -> Names:
        """Derives all names from a component's name.

        Args:
            kind: one of the seven kinds of component.
            component: the component's name.
            suite: name of the suite and, with a prefix, of the distribution; by default the component's with hyphens.

        Raises:
            BenchError: the name is not valid for a component, a module and a class.
        """
        if not _NAME.fullmatch(component):
            raise BenchError(
                f"{component!r} cannot name both a component and a module; use at most 40 letters, digits and '_', "
                "with a letter first"
            )
        words = [word for word in _HUMP.sub("_", component).split("_") if word]
        class_name = "".join(word[0].upper() + word[1:] for word in words)
        taken = next((word for word in (component, class_name) if keyword.iskeyword(word)), None)
        if taken:
            raise BenchError(f"{component!r} cannot be used because {taken} is a Python keyword; choose another name")
        suite = suite or "-".join(words).lower()
        return cls(kind, component, class_name, f"msda-bench-{suite}", suite)

    @property
    def module(self) -> str:
        """The name of the module, such as msda_bench_inverse_risk."""
        return self.distribution.replace("-", "_")
