"""The row of a user's own estimator in a suite: FILE:FUNCTION, a Python file beside the suite."""

from __future__ import annotations

from typing import Any

from msda_bench.suite.issues import ValidationIssue, refuse_any, refused, shown_value

OWN_SCHEME = "estimator"
"""The scheme that runs code of the user's own."""
_OPTIONS = ("sees", "dense", "arguments")


def as_scheme(method: dict[str, Any]) -> dict[str, Any]:
    """A method as written, with its `estimator` as the scheme of that name.

    Args:
        method: the keys of a row of `methods`, not validated.

    Returns:
        The method, as it is if it has no estimator.

    Raises:
        ValueError: the estimator is no FILE:FUNCTION, or other keys do not go with it; pydantic reports its faults.
    """
    estimator = method.get("estimator")
    options = [key for key in _OPTIONS if key in method]
    if estimator is None:
        refuse_any(
            ValidationIssue((key,), "is of an own estimator; add estimator: FILE:FUNCTION", "key") for key in options
        )
        return method
    if "scheme" in method:
        raise refused("is a scheme of its own; remove scheme", ("estimator",), "key")
    file, _, function = estimator.rpartition(":") if isinstance(estimator, str) else ("", "", "")
    if not file.endswith(".py") or not function:
        what = "must be FILE:FUNCTION, a Python file and what it defines, such as my_models.py:make_svm"
        raise refused(f"{what}, not {shown_value(estimator)}", ("estimator",))
    own = {"file": file, "function": function} | {key: method[key] for key in options}
    rest = {key: value for key, value in method.items() if key not in ("estimator", *options)}
    return rest | {"scheme": {OWN_SCHEME: own}}
