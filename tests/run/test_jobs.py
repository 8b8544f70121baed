from __future__ import annotations

import itertools

from fake_training import fake_cell, fake_expansion

from msda_bench.run.jobs import Job, make_jobs


def test_cells_with_the_same_split_are_adjacent_and_none_is_lost() -> None:
    cells = fake_expansion(methods=("A", "B", "C"), seeds=3).cells
    jobs = make_jobs(cells)
    assert {job.keys for job in jobs} == {(key,) for key in cells}
    assert len(jobs) == len(cells)
    splits = [(job.cells[0].target, job.cells[0].seed) for job in jobs]
    changes = sum(one != other for one, other in itertools.pairwise(splits))
    assert changes == len(set(splits)) - 1


def test_a_job_is_divided_without_loss() -> None:
    cells = tuple(fake_cell(seed=seed) for seed in range(5))
    job = Job(tuple(cell.key for cell in cells), cells, attempt=2)
    one, other = job.halves()
    assert one.cells + other.cells == cells
    assert one.keys + other.keys == job.keys
    assert (one.attempt, other.attempt) == (1, 1)
    kept = job.only({cells[1].key, cells[3].key})
    assert kept.cells == (cells[1], cells[3])
    assert kept.attempt == 2
