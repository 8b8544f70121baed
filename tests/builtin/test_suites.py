"""The project's suites plan what they describe, with the settings of papers and authors; weights find good sources."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.builtin.suites import loaded

SOURCE_FREE = """
schema: 1
name: free
dataset: {opinions: {train: 100}}
targets: [tweets]
seeds: 1
backbone: {mlp: {hidden: [8], dropout: 0.0}}
training: {epochs: 1, batch: 20, optimizer: adam}
methods: {SRC: {scheme: pooled}, SHOT: {scheme: shot}, DECISION: {scheme: decision}}
validators: [source_accuracy, infomax]
select: {how: grid, budget: 2, by: source_accuracy, space: {training.optimizer.adam.lr: [0.001, 0.01]}}
"""


@pytest.mark.parametrize(("by", "noted"), [("source_accuracy", True), ("infomax", False), ("oracle", False)])
def test_a_note_names_source_free_methods_that_scores_of_the_sources_select(
    by: str, noted: bool, tmp_path: Path
) -> None:
    path = tmp_path / "free.yaml"
    path.write_text(SOURCE_FREE.replace("by: source_accuracy", f"by: {by}"))
    (table,) = loaded(path)[1].plan.experiments
    notes = [note for note in table.notes if note.startswith("SHOT, DECISION: adapt without the sources")]
    assert len(notes) == noted
    assert not any("SRC" in note for note in notes)
