from __future__ import annotations

import itertools
from dataclasses import replace

from fake_training import fake_cell, fake_expansion

from msda_bench.running.jobs import Job, make_jobs


def test_cells_of_a_split_are_adjacent_and_none_is_lost() -> None:
    cells = fake_expansion(methods=("A", "B", "C"), seeds=3).cells
    jobs = make_jobs(cells)
    assert {job.keys for job in jobs} == {(key,) for key in cells}
    assert len(jobs) == len(cells)
    splits = [(job.cells[0].target, job.cells[0].seed) for job in jobs]
    changes = sum(one != other for one, other in itertools.pairwise(splits))
    assert changes == len(set(splits)) - 1


def test_dividing_a_job_loses_no_cell() -> None:
    cells = tuple(fake_cell(seed=seed) for seed in range(5))
    job = Job(tuple(cell.key for cell in cells), cells, attempt=2)
    one, other = job.halves()
    assert one.cells + other.cells == cells
    assert one.keys + other.keys == job.keys
    assert (one.attempt, other.attempt) == (1, 1)
    kept = job.only({cells[1].key, cells[3].key})
    assert kept.cells == (cells[1], cells[3])
    assert kept.attempt == 2


def test_stacked_cells_differ_only_in_seed_domains_and_numbers() -> None:
    cells = {cell.key: cell for cell in [fake_cell(m, t, s) for m in "AB" for t in ("t0", "t1") for s in range(3)]}
    numbers = replace(next(iter(cells.values())), mu=0.5)
    other = replace(numbers, training=numbers.training.model_copy(update={"epochs": 7}))
    cells |= {numbers.key: numbers, other.key: other}
    jobs = make_jobs(cells, most=4)
    assert sorted(len(job.cells) for job in jobs) == [1, 2, 3, 4, 4]
    assert sorted(key for job in jobs for key in job.keys) == sorted(cells)
    for job in jobs:
        assert len({(cell.scheme.name, cell.training.epochs) for cell in job.cells}) == 1
        assert job.keys == tuple(cell.key for cell in job.cells)
