"""The methods of the paper and the field as estimators, one line per method; `Estimator.recipe` explains recipes."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from msda_bench.sklearn.estimators import Estimator, MSDAClassifier, MSDARegressor


def _init(defaults: Mapping[str, Any]) -> Callable[..., None]:
    """An `__init__` that stores its arguments, with the signature from which scikit-learn reads the parameters."""
    parameters = [inspect.Parameter("self", inspect.Parameter.POSITIONAL_OR_KEYWORD)]
    for name, default in defaults.items():
        parameters.append(inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default))
    signature = inspect.Signature(parameters)

    def init(*args: Any, **given: Any) -> None:
        bound = signature.bind(*args, **given)
        bound.apply_defaults()
        for name in defaults:
            setattr(args[0], name, bound.arguments[name])

    init.__signature__ = signature  # type: ignore[attr-defined]
    return init


def _method(base: type[Estimator], name: str, what: str, recipe: Mapping[str, Any], **own: Any) -> Any:
    """An estimator of this recipe; `own` are the method's parameters with their defaults, `what` says what it is."""
    paragraphs = [what]
    if own:
        lines = [f"        {key}: {value!r} by default." for key, value in own.items()]
        paragraphs.append("\n".join(["    Parameters of this method:", *lines]))
    paragraphs.append(f"    See `{base.__name__}` for the shared parameters.\n    ")
    shared = {}
    for parameter in inspect.signature(Estimator.__init__).parameters.values():
        if parameter.kind is parameter.KEYWORD_ONLY:
            shared[parameter.name] = parameter.default
    attributes = {
        "__doc__": "\n\n".join(paragraphs),
        "__init__": _init({**own, **shared}),
        "__module__": __name__,
        "recipe": dict(recipe),
    }
    return type(name, (base,), attributes)


_classifier = partial(_method, MSDAClassifier)


def _both(name: str, what: str, recipe: Mapping[str, Any], **own: Any) -> tuple[Any, Any]:
    """The classifier and the regressor of a method."""
    regressor = _method(MSDARegressor, f"{name}Regressor", what, recipe, **own)
    return _classifier(name, what, recipe, **own), regressor


def _weighed_by(aggregator: str) -> dict[str, Any]:
    """A recipe with d_A and this aggregator, which has a parameter gamma."""
    return {**_D_A, "aggregator": {aggregator: {"gamma": "$gamma"}}}


def _regularised_by(term: str) -> dict[str, Any]:
    """A recipe that adds a term of the target's predictions to the sources' risks."""
    return {"scheme": {"regularised": {"by": term, "weight": "$weight"}}}


_D_A = {"discrepancy": "d_A", "mu": "$mu"}
_WDGRL = {"scheme": "alternate", "discrepancy": {"wasserstein": {"penalty": 10.0}}, "mu": "$mu"}
_CDAN = {
    "scheme": {"cdan": {"entropy": "$entropy"}},
    "discrepancy": {"d_A": {"hidden": [500, 500], "dropout": 0.5}},
    "mu": "$mu",
}

SRC, SRCRegressor = _both("SRC", "All sources pooled, without adaptation.", {"scheme": "pooled"})
AdaBN, AdaBNRegressor = _both(
    "AdaBN", "Li et al. 2017; SRC, unless the backbone has batch normalisation.", {"scheme": "adabn"}
)
PassThrough, PassThroughRegressor = _both(
    "PassThrough", "SRC whose batch normalisation sees the target; a control.", {"scheme": "pass_through"}
)
DANN, DANNRegressor = _both(
    "DANN", "Ganin et al. 2016, with the sources pooled.", {"scheme": "pooled", **_D_A}, mu=0.01
)
MDAN, MDANRegressor = _both("MDAN", "Zhao et al. 2018, soft version.", _weighed_by("logsumexp"), gamma=10.0, mu=0.01)
MDMN, MDMNRegressor = _both("MDMN", "Li et al. 2018.", {"scheme": "mdmn", "mu": "$mu"}, mu=0.01)
DARN, DARNRegressor = _both("DARN", "Wen et al. 2020.", _weighed_by("sharpmax"), gamma=0.9, mu=0.01)
WADN, WADNRegressor = _both("WADN", "Shui et al. 2021, aggregation only.", _weighed_by("wadn"), gamma=1.0, mu=0.01)
WDGRL, WDGRLRegressor = _both("WDGRL", "Shen et al. 2018.", _WDGRL, mu=0.1)
GroupDRO, GroupDRORegressor = _both(
    "GroupDRO", "Sagawa et al. 2020.", {"aggregator": {"group_dro": {"eta": "$eta"}}}, eta=0.01
)
M3SDA = _classifier("M3SDA", "Peng et al. 2019.", {"scheme": "m3sda", "mu": "$mu"}, mu=0.0005)
MCD = _classifier("MCD", "Saito et al. 2018.", {"scheme": {"mcd": {"repeats": "$repeats"}}}, repeats=4)
CDAN = _classifier("CDAN", "Long et al. 2018.", _CDAN, entropy=False, mu=0.5)
MDD = _classifier(
    "MDD", "Zhang et al. 2019.", {"scheme": {"mdd": {"margin": "$margin"}}, "mu": "$mu"}, margin=4.0, mu=0.003
)
MFSAN = _classifier("MFSAN", "Zhu et al. 2019.", {"scheme": "mfsan", "mu": "$mu"}, mu=0.1)
SImpAl = _classifier("SImpAl", "Venkat et al. 2020.", {"scheme": "simpal"})
SHOT = _classifier("SHOT", "Liang et al. 2020, source-free.", {"scheme": {"shot": {"beta": "$beta"}}}, beta=0.3)
DECISION = _classifier(
    "DECISION", "Ahmed et al. 2021, source-free.", {"scheme": {"decision": {"beta": "$beta"}}}, beta=0.3
)
KD3A = _classifier("KD3A", "Feng et al. 2021.", {"scheme": "kd3a"})
WJDOT, WJDOTRegressor = _both("WJDOT", "Turrisi et al. 2022.", {"scheme": {"wjdot": {"beta": "$beta"}}}, beta=1.0)
MCC = _classifier("MCC", "Jin et al. 2020.", _regularised_by("mcc"), weight=1.0)
BNM = _classifier("BNM", "Cui et al. 2020.", _regularised_by("bnm"), weight=1.0)
Ensemble, EnsembleRegressor = _both("Ensemble", "One model per source, predictions averaged.", {"scheme": "ensemble"})
BestSingle, BestSingleRegressor = _both("BestSingle", "The model of the best single source.", {"scheme": "best_single"})

__all__ = [
    name for name, value in globals().items() if getattr(value, "__module__", None) == __name__ and name[0] != "_"
]
