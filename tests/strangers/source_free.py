"""Training on the sources, then source-free adaptation with pseudo-labels renewed in each epoch."""

import torch

from msda_bench.api import Phase, Scheme, Stage, Step, component, hookimpl


@component
class SourceFree(Scheme):
    """Pseudo-labels from the nearest class centre, after SHOT (Liang et al. 2020), with a fixed classifier."""

    name = "source_free"
    uses_discrepancy = False
    uses_mu = False
    tasks = ("classification",)
    stages = (
        Stage("train", share=1, sees=("sources",), phases=(Phase("all"),)),
        Stage("adapt", share=2, sees=("target",), phases=(Phase("features", ("features",)),)),
    )

    def carry(self, parts, sizes, stage):
        return {"labels": torch.zeros(sizes.target, dtype=torch.int64)} if stage.name == "adapt" else {}

    def at_epoch(self, parts, target, carried, stage):
        points = torch.nn.functional.normalize(target.features, dim=1)
        answers = target.outputs.softmax(-1)
        for _ in range(2):
            centres = torch.nn.functional.normalize(answers.T @ points, dim=1)
            labels = (points @ centres.T).argmax(-1)
            answers = torch.nn.functional.one_hot(labels, answers.shape[1]).to(points)
        return {"labels": labels}

    def step(self, parts, batch, state, phase):
        if phase.name == "all":
            risks = parts.forward(batch).risks
            return Step(risks.mean(), risks)
        outputs = parts.predictor(parts.features(batch.x))
        objective = parts.loss(outputs, batch.carried["labels"][batch.target_rows]).mean()
        return Step(objective)


@hookimpl
def msda_schemes():
    return [SourceFree]
