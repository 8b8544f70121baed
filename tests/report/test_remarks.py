from __future__ import annotations

from dataclasses import replace

import pytest

from msda_bench.report.remarks import annotated
from msda_bench.store.faults import Faults
from msda_bench.store.record import Outcome, Record

SOUND = {"device": "cpu", "numba": "0.61", "torch": "2.11", "stack": 1, "distributions": {"msda-bench": "0.1.0"}}


@pytest.fixture
def notes(make_sample):
    """`notes(change)`: the notes of methods a and b, targets x and y, seeds 0 to 5, each record made by `change`."""

    def make(change, faults=None):
        plan, records = make_sample(lambda *_: Outcome(10, n_correct=5))
        for cell in plan.cells:
            sound = replace(records[cell.key], provenance=SOUND)
            records[cell.key] = change(sound, cell.method, cell.target, cell.seed) or sound
        return annotated(plan, records, faults(plan) if faults else None).experiments[0].notes

    return make


def made(record: Record, **provenance) -> Record:
    return replace(record, provenance=SOUND | provenance)


def test_sound_records_leave_nothing_to_say(notes):
    assert notes(lambda *_: None) == ()


def test_records_that_say_nothing_of_their_making_are_not_suspected(notes):
    assert notes(lambda record, *_: replace(record, provenance={})) == ()


def test_the_suites_own_notes_come_first(sample):
    plan, records = sample
    records = {key: replace(record, provenance={"device": "cpu", "numba": None}) for key, record in records.items()}
    first, second = annotated(plan, records).experiments[0].notes
    assert first == "train reduced to 500, not the paper's 2000"
    assert second.startswith("trained without numba")


def test_plain_loops(notes):
    slow = "trained without numba, by plain loops, which are slower and round otherwise"
    assert notes(lambda record, *_: made(record, numba=None)) == (f"{slow}: all runs",)
    found = notes(lambda record, method, target, seed: made(record, numba=None) if method == "b" else None)
    assert found == (f"{slow}: b, all runs",)
    found = notes(lambda record, method, target, seed: made(record, numba=None) if seed == 3 else None)
    first = "2 of 12 runs, first at target x, seed 3"
    assert found == (f"{slow}: a, {first}; b, {first}",)


def test_a_gpu_needs_no_numba(notes):
    assert notes(lambda record, *_: made(record, numba=None, device="cuda")) == ()


def test_cells_that_were_not_stacked(notes):
    def alone(record, method, target, seed):
        if method == "a":
            return made(record, stack_note="aggregator 'n' cannot be stacked\n(stackable = False)")
        return made(record, stack=4, stack_note="8 runs at once did not fit in memory") if seed > 3 else made(record)

    assert notes(alone) == (
        "trained alone, which is slower: a, all runs: aggregator 'n' cannot be stacked (stackable = False)",
        (
            "trained in stacks of 4, which is slower: b, 4 of 12 runs, first at target x, seed 4: 8 runs at once did "
            "not fit in memory"
        ),
    )


def test_a_validator_that_failed(notes):
    def fails(record, method, target, seed):
        return replace(record, message=f"validator 'v' raised {seed}\x1b[31m") if target == "y" else None

    first = "6 of 12 runs, first at target y, seed 0: validator 'v' raised 0 [31m"
    assert notes(fails) == tuple(f"without a validator's score: {name}, {first}" for name in "ab")


def test_a_run_that_failed_is_no_validators_fault(notes):
    assert notes(lambda record, *_: Record(record.key, {}, "failed", message="no", provenance=SOUND)) == ()


def test_what_a_component_changed_of_its_process(notes):
    def changes(record, method, target, seed):
        return made(record, put_back=["torch's default dtype", "a\x1b[31m"]) if method == "b" else None

    assert notes(changes) == (
        "a component changed torch's default dtype and a [31m, which was put back after its run: b, all runs",
    )


def test_other_versions_than_the_plans(notes):
    older = {"distributions": {"msda-bench": "0.0.9"}}
    assert notes(lambda record, *_: made(record, **older)) == (
        "made with another msda-bench than the plan's 0.1.0: 0.0.9 (all runs)",
    )
    assert notes(lambda record, method, *_: made(record, **older) if method == "a" else None) == (
        "made with another msda-bench than the plan's 0.1.0: 0.0.9 (a, all runs)",
    )


def test_what_is_mixed(notes):
    def mixed(record, method, target, seed):
        more = {"distributions": {"msda-bench": "0.1.0", "their-data": f"1.{target == 'y'}"}}
        return made(record, device="cpu" if seed else "cuda", **more)

    assert notes(mixed) == (
        (
            "made with more than one device: cpu (a, 10 of 12 runs, first at target x, seed 1; b, 10 of 12 runs, first "
            "at target x, seed 1); cuda (a, 2 of 12 runs, first at target x, seed 0; b, 2 of 12 runs, first at "
            "target x, seed 0)"
        ),
        (
            "made with more than one their-data: 1.False (a, 6 of 12 runs, first at target x, seed 0; b, 6 of 12 runs, "
            "first at target x, seed 0); 1.True (a, 6 of 12 runs, first at target y, seed 0; b, 6 of 12 runs, first at "
            "target y, seed 0)"
        ),
    )


def test_what_the_store_told(notes):
    def faults(plan):
        keys = [cell.key for cell in plan.cells]
        return Faults(damaged=frozenset(keys[1:3]), conflicting=frozenset(keys[-1:]))

    assert notes(lambda *_: None, faults) == (
        (
            "another result of the same cell is stored beside the one that counts: b, 1 of 12 runs, first at target y, "
            "seed 5"
        ),
        (
            "a damaged record counts as missing; run the suite again, which makes it anew: a, 2 of 12 runs, first at "
            "target x, seed 1"
        ),
    )


def test_the_order_of_cells_and_records_changes_nothing(sample):
    plan, records = sample
    records = {key: replace(record, provenance={"torch": key[0]}) for key, record in records.items()}
    turned = replace(plan, cells=plan.cells[::-1])
    assert annotated(turned, dict(reversed(records.items()))).experiments == annotated(plan, records).experiments
