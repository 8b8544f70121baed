"""Texts, their words and groups of words, sparse rows and standardised columns."""

from collections import Counter

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse import csr_matrix
from sklearn.preprocessing import StandardScaler

from msda_bench.functional import (
    SparseRows,
    alike,
    characters_of,
    fit_ngrams,
    frequent_columns,
    ngram_counts,
    plain_texts,
    reverse_gradient,
    standardiser,
    tokens,
    unspaced,
)


@pytest.mark.parametrize(
    ("texts", "plain"),
    [
        (["yes", " yes\t", "y\u00a0 es", "Yes"], ["yes", "yes", "y es", "Yes"]),
        (["caf\u00e9", "cafe\u0301"], ["caf\u00e9", "caf\u00e9"]),
        (["101", "101.0", "101 ", "00101", "+1.01e2", ""], ["101"] * 5 + [""]),
        (["-0.0", "0", "NaN"], ["0", "0", ""]),
        (["007", "010", ""], ["007", "010", ""]),
        (["0.50", ".5", "1"], ["0.5", "0.5", "1"]),
        (["101", "101.0", "A7"], ["101", "101.0", "A7"]),
        ([str(2**53), str(2**53 + 1)], [str(2**53), str(2**53 + 1)]),
        (["1", "1e999"], ["1", "1e999"]),
        (["None", "<NA>", "#N/A", "n/a", "-nan", "NaT", "NA ", "?", " ", "none"], [""] * 9 + ["none"]),
    ],
)
def test_texts_that_mean_the_same_are_one(texts, plain):
    assert plain_texts(texts) == plain


def test_a_text_is_missing_only_if_the_list_names_it():
    assert plain_texts(["NA", "-1", "-1.0", ""], ["-1"]) == ["NA", "", "-1.0", ""]
    assert plain_texts(["-1.0", "-1", "1.0"], ["-1"]) == ["", "", "1"]


def test_texts_that_look_alike_are_named_together():
    apart = ["A", "b", "a", "b.", "c", "caf\u00e9", "Cafe\u0301", "x\u00ady", "xy", "101", "101.0", "A7"]
    assert alike(apart) == [("A", "a"), ("b", "b."), ("caf\u00e9", "Cafe\u0301"), ("x\u00ady", "xy"), ("101", "101.0")]


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


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("服务很好\uff01吃了3次", ["服", "务", "很", "好", "!", "吃", "了", "3", "次"]),
        ("iPhone很贵\uff0cdon't buy", ["iphone", "很", "贵", "don't", "buy"]),
        ("とてもｶﾞｯｶﾘ", ["と", "て", "も", "ガ", "ッ", "カ", "リ"]),
        ("ดีมาก ที่นี่", ["ดี", "ม", "า", "ก", "ที่", "นี่"]),
        ("no 1", ["no", "1"]),
    ],
)
def test_scripts_without_blanks_are_split_into_letters_with_their_marks(text, expected):
    assert characters_of(text) == expected
    assert unspaced([text]) == (len([part for part in expected if not part.isascii()]) > len(expected) / 2)
    assert not unspaced(["a few words", "one \u5b57"])


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


def sparse(dense):
    rows, columns = dense.nonzero(as_tuple=True)
    offsets = torch.cat([torch.zeros(1, dtype=torch.int64), torch.bincount(rows, minlength=len(dense)).cumsum(0)])
    return SparseRows(columns, dense[rows, columns], offsets, dense.shape[1])


@settings(max_examples=40)
@given(st.integers(1, 8), st.integers(1, 9), st.integers(0, 1000), st.data())
def test_taking_rows_equals_dense_indexing(n, width, seed, data):
    torch.manual_seed(seed)
    dense = torch.randn(n, width) * (torch.rand(n, width) < 0.4)
    rows = torch.tensor(data.draw(st.lists(st.integers(0, n - 1), max_size=12)), dtype=torch.int64)
    whole = sparse(dense)
    taken = whole.take(rows)
    assert len(taken) == len(rows)
    assert torch.equal(taken.to_dense(), dense[rows])
    assert torch.equal(whole.to_dense(), dense)


def test_repeated_columns_add_up():
    rows = SparseRows(torch.tensor([1, 1]), torch.tensor([2.0, 3.0]), torch.tensor([0, 2]), 3)
    assert rows.to_dense().tolist() == [[0.0, 5.0, 0.0]]


@settings(max_examples=40)
@given(st.floats(-(2.0**126), 2.0**126, width=32))
def test_a_reversed_gradient_leaves_the_value_unchanged_bit_for_bit(value):
    x = torch.tensor(value, requires_grad=True)
    y = reverse_gradient(x)
    y.backward()
    assert y.item() == value
    assert x.grad.item() == -1


@settings(max_examples=20)
@given(seed=st.integers(0, 99), by=st.sampled_from(["domain", "pooled"]))
def test_standardised_columns_agree_with_scikit_learn(seed, by):
    draw = np.random.default_rng(seed)
    train = {name: draw.normal(at, 1 + at, (9, 4)).astype(np.float32) for at, name in enumerate("abc")}
    for x in train.values():
        x[:, 0] = 0.1  # constant
    features = standardiser(train, by)
    new = draw.normal(size=(5, 4)).astype(np.float32)
    for name, mine in train.items():
        known = StandardScaler().fit(mine if by == "domain" else np.concatenate(list(train.values())))
        found = features(name, new)
        assert found.dtype == np.float32
        np.testing.assert_allclose(found[:, 1:], known.transform(new)[:, 1:], rtol=1e-4, atol=1e-4)
        assert not features(name, mine)[:, 0].any()
