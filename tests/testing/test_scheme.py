"""The contract of schemes accepts correct schemes and catches each sin."""

from __future__ import annotations

import random
import sys

import torch
from torch import nn

from msda_bench.api import Phase, Scheme, Stage, Step, component
from msda_bench.functional import uniform
from msda_bench.testing import SchemeContract
from tests.testing.sins import sin


@component
class Plain(Scheme):
    """One batch per source, weighted by the aggregator."""

    name = "plain"

    def step(self, parts, batch, state, phase):
        seen = parts.forward(batch)
        gaps = parts.critic(seen.source, seen.target)
        objective, weights, state = parts.aggregate(seen.risks, gaps, state)
        return Step(objective, seen.risks, gaps, weights, state)


class TestPlain(SchemeContract):
    component = Plain()


@component
class OwnCritic(Scheme):
    """Two phases, its own critic, and draws from the step's key."""

    name = "own_critic"
    uses_discrepancy = False
    stages = (Stage("all", phases=(Phase("all"), Phase("critic", ("critic",)))),)

    def build(self, network, k, discrepancy):
        return nn.Linear(network.feature_dim, k)

    def step(self, parts, batch, state, phase):
        seen = parts.forward(batch)
        features = seen.target if phase.name == "all" else seen.target.detach()
        noise = uniform(batch.key, tuple(features.shape))
        gaps = parts.critic(features + noise).square().mean(0)
        weights = torch.softmax(gaps.detach(), dim=-1)
        objective = gaps.mean() + (seen.risks.mean() if phase.name == "all" else 0)
        return Step(objective, seen.risks, gaps, weights, state)


class TestOwnCritic(SchemeContract):
    component = OwnCritic()


@component
class Spoiled(Plain):
    """Correct except for what a subclass breaks."""

    name = "spoiled"


@sin("groups_hold_known_domains", r"draws from \['elsewhere'\]; there are only")
class Stranger(Spoiled):
    def groups(self, sources, target):
        return (("elsewhere",),)


@sin("epoch_has_steps", "an epoch has 0 steps; the contract asks for a whole number of at least 1")
class NoSteps(Spoiled):
    def steps(self, sizes, batch):
        return max(map(sum, sizes)) // batch


@sin("step_gives_what_the_record_holds", r"the shape of the objective .* is \(1,\)")
class VectorObjective(Spoiled):
    def step(self, parts, batch, state, phase):
        step = super().step(parts, batch, state, phase)
        return step._replace(objective=step.risks)


@sin("step_gives_what_the_record_holds", "NaN or infinity in the gaps ")
class Infinite(Spoiled):
    def step(self, parts, batch, state, phase):
        step = super().step(parts, batch, state, phase)
        return step._replace(gaps=step.gaps / 0)


@sin("gradient_reaches_what_a_phase_trains", "no phase gives the features a gradient")
class Frozen(Spoiled):
    stages = (Stage("all", phases=(Phase("all", ("predictor",)),)),)

    def step(self, parts, batch, state, phase):
        seen = parts.forward(batch)
        outputs = parts.predictor(seen.source.detach().flatten(0, 1))
        objective = parts.loss(outputs, batch.y.reshape(-1)).mean()
        return Step(objective, seen.risks)


@sin("gradient_reaches_what_a_phase_trains", "declares that it trains critic, but gives it no gradient")
class IdleCritic(Spoiled):
    def step(self, parts, batch, state, phase):
        seen = parts.forward(batch)
        return Step(seen.risks.mean())


@sin("gradient_reaches_what_a_phase_trains", "trains 'encoder'; the parts are features, predictor")
class UnknownPart(Spoiled):
    stages = (Stage("all", phases=(Phase("all", ("encoder",)),)),)


@sin("leaves_the_process_alone", "changed torch's global random generator")
class Noisy(Spoiled):
    def step(self, parts, batch, state, phase):
        return super().step(parts, batch._replace(x=batch.x + torch.rand_like(batch.x)), state, phase)


@sin("leaves_the_process_alone", "changed torch's number of threads")
class Threads(Spoiled):
    def step(self, parts, batch, state, phase):
        torch.set_num_threads(torch.get_num_threads() + 1)
        return super().step(parts, batch, state, phase)


@sin("stacked_runs_equal_each_alone", "cannot be stacked")
class Branching(Spoiled):
    def step(self, parts, batch, state, phase):
        step = super().step(parts, batch, state, phase)
        return step if step.objective.item() > 0 else step._replace(objective=-step.objective)


@sin("step_gives_what_the_record_holds", "takes no aggregator, so it must not call one")
class Greedy(Spoiled):
    uses_discrepancy = False

    def build(self, network, k, discrepancy):
        return nn.Linear(network.feature_dim, k)

    def step(self, parts, batch, state, phase):
        risks = parts.forward(batch).risks
        return Step(parts.aggregate(risks, risks, state).objective, risks, risks, risks, state)


@sin("groups_hold_known_domains", "draws labels of the target; an oracle must set")
class PeekingIfMany(Spoiled):
    def groups(self, sources, target):
        return (*((source,) for source in sources), *([(target,)] if len(sources) == 3 else []))


@sin("groups_hold_known_domains", r"draws from \['north'\]; there are only \('north/0',")
class ByHeart(Spoiled):
    def groups(self, sources, target):
        return (("north",), ("east",), ("south",))


@sin("step_gives_what_the_record_holds", "the sum of the weights .* is 3")
class UnnormalisedThree(Spoiled):
    def step(self, parts, batch, state, phase):
        step = super().step(parts, batch, state, phase)
        return step._replace(weights=torch.ones_like(step.risks)) if len(batch.y) == 3 else step


@sin("tasks_are_known", r"tasks is \('classification', 'clustering'\); the contract asks for a tuple of classification")
class AndClustering(Spoiled):
    tasks = ("classification", "clustering")


@sin("critic_is_its_own", "the critic's head.weight, head.bias belong to the network")
class SharingToo(Spoiled):
    def build(self, network, k, discrepancy):
        critic = super().build(network, k, discrepancy)
        if k == 3:
            critic.head = network.predictor
        return critic


@sin("is_deterministic", "a second call with the same input changes the objective")
class NoisyGaps(Spoiled):
    def step(self, parts, batch, state, phase):
        step = super().step(parts, batch, state, phase)
        return step._replace(objective=step.objective + 1e-5 * random.SystemRandom().random())


@sin("trains_without_a_discrepancy", "not NoneType. No target batch .* `needs_target")
class Leaning(Spoiled):
    def step(self, parts, batch, state, phase):
        step = super().step(parts, batch, state, phase)
        confident = parts.predictor(parts.forward(batch).target).square().mean()
        return step._replace(objective=step.objective + confident)


@component
class LeaningOpenly(Leaning):
    """Declares that it needs the target."""

    needs_target = True


class TestLeaningOpenly(SchemeContract):
    component = LeaningOpenly()


@sin("leaves_the_process_alone", "Python's global random generator")
class DrawsAndForgets(Spoiled):
    def step(self, parts, batch, state, phase):
        random.random()
        return super().step(parts, batch, state, phase)


@sin("input_is_not_changed", "changed its input, the batch's key, in place")
class OverwritesKey(Spoiled):
    def step(self, parts, batch, state, phase):
        batch.key.zero_()
        return super().step(parts, batch, state, phase)


@sin("sees_no_target_label", "inverting the target's labels .* changes the run's .* asks to train without")
class Stealing(Spoiled):
    def step(self, parts, batch, state, phase):
        step = super().step(parts, batch, state, phase)
        frame = sys._getframe()
        while frame and not (frame.f_code.co_name == "fit" and "runs" in frame.f_locals):
            frame = frame.f_back
        if not frame:
            return step
        stolen = frame.f_locals["runs"][0].prepared._target_labels.float().mean()
        return step._replace(objective=step.objective + stolen * parts.features(batch.x).square().mean())


@sin("carries_what_it_started_with", "returns 'other' to carry, which `carry` did not name")
class CarriesMore(Spoiled):
    def after_step(self, parts, batch, phase):
        return {"other": torch.zeros(2)} if batch.x.shape[0] == 24 else {}


@sin("predicts_each_example_by_itself", "outputs depend on the rest of the batch")
class PredictsTogether(Spoiled):
    def predict(self, parts, x, carried):
        features, outputs = super().predict(parts, x, carried)
        return features, outputs - outputs.mean(0)


@sin("stacked_training_equals_each_alone", "trains alone, not in a stack: torch.vmap refuses it")
class BranchingAfterwards(Spoiled):
    def carry(self, parts, sizes, stage):
        return {"calls": torch.zeros(())}

    def after_step(self, parts, batch, phase):
        return {"calls": batch.carried["calls"] + 1} if batch.carried["calls"] >= 0 else {}
