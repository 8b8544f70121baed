from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse import csr_matrix

from msda_bench.functional import fit_ngrams, frequent_columns, ngram_counts, tokens


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("I DON'T like it", ["i", "don't", "like", "it"]),
        ("don\u2019t", ["don't"]),
        ("''quoted'' well-made, 3.5 stars", ["quoted", "well-made", "3", "5", "stars"]),
        ("great :) or not =( ;-D", ["great", ":)", "or", "not", "=(", ";-d"]),
        ("R&amp;B &lt;3 it!!", ["r", "b", "<3", "it", "!", "!"]),
        ("see http://url_removed! now?", ["see", "http://url_removed", "!", "now", "?"]),
        ("clichés", ["clichés"]),
        ("snake_case", ["snake", "case"]),
        (" ... ", []),
    ],
)
def test_tokens_are_words_emoticons_and_marks(text, expected):
    assert tokens(text) == expected


texts = st.lists(
    st.lists(st.sampled_from(["a", "b", "c", "don't", "!"]), max_size=6).map(" ".join), min_size=1, max_size=8
)


@settings(max_examples=30)
@given(texts=texts, longest=st.integers(1, 4))
def test_counts_agree_with_counting_by_hand(texts, longest):
    counts, vocabulary = ngram_counts(texts, longest)
    assert vocabulary == sorted(set(vocabulary))
    for row, text in zip(counts.toarray(), texts, strict=True):
        words = text.split()
        runs = (words[i : i + n] for n in range(1, longest + 1) for i in range(len(words) - n + 1))
        expected = Counter(" ".join(run) for run in runs)
        assert {run: count for run, count in zip(vocabulary, row.tolist(), strict=True) if count} == expected


matrices = st.lists(st.lists(st.integers(0, 2), min_size=5, max_size=5), min_size=1, max_size=6).map(
    lambda rows: csr_matrix(np.array(rows, np.float32))
)


@settings(max_examples=30)
@given(parts=st.lists(matrices, min_size=1, max_size=3), most=st.integers(1, 7), least=st.integers(1, 3))
def test_frequent_columns_are_those_of_most_rows(parts, most, least):
    rows = sum((part.toarray() > 0).sum(0) for part in parts)
    ranked = sorted(range(5), key=lambda column: (-rows[column], column))[:most]
    assert frequent_columns(parts, most, least).tolist() == [column for column in ranked if rows[column] >= least]


@settings(max_examples=30)
@given(train=st.lists(texts, min_size=1, max_size=3), new=texts, columns=st.integers(1, 9), least=st.integers(1, 2))
def test_a_learned_vocabulary_holds_the_most_frequent_training_ngrams(train, new, columns, least):
    counts, vocabulary = ngram_counts([text for part in train for text in part], 2)
    kept = frequent_columns([counts], columns, least)
    for binary in (False, True):
        features = fit_ngrams(dict(enumerate(train)), columns, longest=2, least=least, binary=binary)
        found = features("", np.array(new, dtype=object))
        assert found.shape == (len(new), columns)
        assert found.dtype == np.float32
        assert found.has_sorted_indices
        mine, runs = ngram_counts(new, 2)
        place = {run: number for number, run in enumerate(runs)}
        for number, column in enumerate(kept):
            own = place.get(vocabulary[column])
            expected = np.zeros(len(new)) if own is None else mine.toarray()[:, own]
            assert found.toarray()[:, number].tolist() == (np.minimum(expected, 1) if binary else expected).tolist()
        assert not found.toarray()[:, len(kept) :].any()
