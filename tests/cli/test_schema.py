from __future__ import annotations

import json

from msda_bench.cli.main import main


def test_schema_prints_json_with_the_installed_components(capsys):
    assert main(["schema"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["$schema"] == "https://json-schema.org/draft/2020-12/schema"
    assert found["$defs"]["aggregator.sharpmax"]["properties"]["gamma"]["exclusiveMinimum"] == 0
    assert {"amazon", "fonts", "opinions", "sine"} <= set(found["$defs"]["dataset"]["anyOf"][0]["enum"])
