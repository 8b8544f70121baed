import json
import re

from msda_bench.suite.load import suite_schema
from msda_bench.suite.spec import ExperimentFile, IncludeFile
from tests.suite.conftest import HERE


def test_the_schema_holds_all_keys_and_the_installed_components_with_their_parameters(registry):
    schema = suite_schema(registry)
    for form, model in zip(schema["anyOf"], (ExperimentFile, IncludeFile), strict=True):
        assert set(form["properties"]) == {field.alias or name for name, field in model.model_fields.items()}
    required = ["schema", "name", "dataset", "seeds", "backbone", "training", "methods"]
    assert [form["required"] for form in schema["anyOf"]] == [required, ["schema", "name", "include"]]
    definitions = schema["$defs"]
    sharpmax = definitions["aggregator.sharpmax"]
    gamma = {"default": 1.0, "exclusiveMinimum": 0, "title": "Gamma", "type": "number"}
    assert (sharpmax["properties"]["gamma"], sharpmax["additionalProperties"]) == (gamma, False)
    assert sharpmax["description"].endswith(f"({HERE})")
    bare, mapping = definitions["aggregator"]["anyOf"]
    assert bare == {"enum": registry.names("aggregator")}
    for choice in (mapping, definitions["Optimizer"]["anyOf"][1]):
        assert (choice["minProperties"], choice["maxProperties"]) == (1, 1)


def test_every_reference_resolves(registry):
    schema = suite_schema(registry)
    text = json.dumps(schema, allow_nan=False)
    references = set(re.findall(r'"\$ref": "#/\$defs/([^"]+)"', text))
    assert {"dataset", "scheme", "validator"} <= references <= schema["$defs"].keys()
    assert "x-component" not in text
