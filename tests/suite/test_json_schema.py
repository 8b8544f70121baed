from __future__ import annotations

import json
from typing import Any

from msda_bench.suite.json_schema import suite_schema
from msda_bench.suite.spec import ExperimentFile, IncludeFile


def test_the_schema_holds_installed_components_and_their_parameters(registry):
    schema = suite_schema(registry)
    definitions = schema["$defs"]
    sharpmax = definitions["aggregator.sharpmax"]
    assert sharpmax["properties"]["gamma"] == {
        "default": 1.0,
        "exclusiveMinimum": 0,
        "title": "Gamma",
        "type": "number",
    }
    assert sharpmax["additionalProperties"] is False
    assert sharpmax["description"] == "A component with one positive number. (toys 1.0)"
    assert definitions["aggregator"]["anyOf"][0] == {"enum": ["picky", "sharpmax", "uniform"]}
    assert definitions["aggregator"]["anyOf"][1]["properties"]["sharpmax"]["anyOf"][0] == {
        "$ref": "#/$defs/aggregator.sharpmax"
    }
    method = definitions["MethodSpec"]["properties"]
    assert {"$ref": "#/$defs/aggregator"} in method["aggregator"]["anyOf"]
    assert method["scheme"] == {"$ref": "#/$defs/scheme", "default": "adapt", "title": "Scheme"}


def test_both_forms_of_a_suite_list_all_their_keys(registry):
    experiment, include = suite_schema(registry)["anyOf"]
    assert set(experiment["properties"]) == {field.alias or name for name, field in ExperimentFile.model_fields.items()}
    assert set(include["properties"]) == {field.alias or name for name, field in IncludeFile.model_fields.items()}
    assert experiment["required"] == ["schema", "name", "dataset", "seeds", "backbone", "training", "methods"]
    assert include["required"] == ["schema", "name", "include"]


def test_every_reference_resolves(registry):
    schema = json.loads(json.dumps(suite_schema(registry), allow_nan=False))

    def references(value: Any) -> list[str]:
        if isinstance(value, dict):
            own = [value["$ref"]] if "$ref" in value else []
            return own + [ref for item in value.values() for ref in references(item)]
        return [ref for item in value for ref in references(item)] if isinstance(value, list) else []

    found = set(references(schema))
    assert {f"#/$defs/{kind}" for kind in ("dataset", "backbone", "scheme", "discrepancy", "validator")} <= found
    assert all(ref.removeprefix("#/$defs/") in schema["$defs"] for ref in found)
    assert "x-component" not in json.dumps(schema)
