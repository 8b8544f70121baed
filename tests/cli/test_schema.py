from __future__ import annotations

import argparse
import json

from msda_bench.cli import schema


def test_it_prints_json_with_the_components_that_are_installed(capsys):
    parser = argparse.ArgumentParser()
    schema.add_parser(parser.add_subparsers())
    args = parser.parse_args(["schema"])
    assert args.handler(args) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["$schema"] == "https://json-schema.org/draft/2020-12/schema"
    assert found["$defs"]["aggregator.sharpmax"]["properties"]["gamma"]["exclusiveMinimum"] == 0
    assert {"amazon", "fonts", "opinions", "sine"} <= set(found["$defs"]["dataset"]["anyOf"][0]["enum"])
