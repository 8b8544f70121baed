from __future__ import annotations

import io
import tarfile
from pathlib import Path

import numpy as np
import pytest

from msda_bench.api import Task
from msda_bench_builtin.datasets import Opinions
from tests.data.refusal import only_line

MEMBERS = {
    "product": "hutto_ICWSM_2014/amazonReviewSnippets_GroundTruth.txt",
    "film": "hutto_ICWSM_2014/movieReviewSnippets_GroundTruth.txt",
    "editorial": "hutto_ICWSM_2014/nytEditorialSnippets_GroundTruth.txt",
    "tweets": "hutto_ICWSM_2014/tweets_GroundTruth.txt",
}
FILM = "movieReviewSnippets_GroundTruth.txt"
INNER = "vaderSentiment-3.3.2/additional_resources/hutto_ICWSM_2014.tar.gz"
TEXTS = {
    MEMBERS["product"]: b"1_1\t-0.9\tbad bad price\r\n1_2\t0.4\tso so\r\n1_3\t2.5\tgood price\r\n",
    MEMBERS["film"]: "1\t0.5\tun clich\u00e9\r\n2\t-0.5\tbad\tfilm".encode(),
    MEMBERS["editorial"]: b"1\t0\tnothing\n",
    MEMBERS["tweets"]: b"1\t-2.0\tbad clich\xe9\x81\n",
}


def archive(members: dict[str, bytes | None]) -> bytes:
    """Writes a gzipped tar file; a member without bytes is a link to another file."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w:gz") as tar:
        for name, content in members.items():
            member = tarfile.TarInfo(name)
            if content is None:
                member.type, member.linkname = tarfile.SYMTYPE, "/etc/passwd"
            else:
                member.size = len(content)
            tar.addfile(member, io.BytesIO(content or b""))
    return buffer.getvalue()


@pytest.fixture
def put(tmp_path: Path):
    def write(members: dict[str, bytes | None], inner: str = INNER) -> Path:
        path = tmp_path / "vaderSentiment-3.3.2.tar.gz"
        path.write_bytes(archive({inner: archive(members)}))
        return path

    return write


def test_crafted_sentences_have_their_labels_and_texts(put, crafted):
    put(TEXTS)
    product = Opinions().load("product", crafted)
    assert product.y.tolist() == [0, 1]
    assert Opinions(margin=0.0).load("product", crafted).y.tolist() == [0, 1, 1]
    rated = Opinions(mode="regression").load("product", crafted)
    assert rated.y.tolist() == np.array([-0.9, 0.4, 2.5], np.float32).tolist()
    assert Opinions(mode="regression").task == Task("regression")
    film = Opinions().load("film", crafted)
    assert film.y.tolist() == [1, 0]
    assert [list(data.texts) for data in (product, film)] == [
        ["bad bad price", "good price"], ["un clich\u00e9", "bad\tfilm"],
    ]  # fmt: skip
    assert list(rated.texts) == ["bad bad price", "so so", "good price"]
    options = {"words": 9, "ngrams": 1, "min_count": 1}
    for binary, most in ((False, 2), (True, 1)):
        assert Opinions(**options, binary=binary).fit({"": product.x})("", product.x).max() == most
    both = Opinions(ngrams=1).fit({"product": product.x, "film": film.x})
    assert Opinions(words=3, ngrams=1, binary=False).fit({"": product.x})("", product.x).toarray().tolist() == [
        [1, 0, 0],
        [1, 0, 0],
    ]
    assert both("film", film.x).shape == (2, 5000)


def test_lines_that_are_not_utf8_are_read_as_western_european(put, crafted):
    put(TEXTS)
    options = {"words": 3, "ngrams": 1, "min_count": 1}
    film, tweets = (Opinions(**options).load(domain, crafted) for domain in ("film", "tweets"))
    common = Opinions(**options | {"min_count": 2, "words": 2}).fit({"film": film.x, "tweets": tweets.x})
    assert common("tweets", tweets.x).toarray().tolist() == [[1, 1]]  # "bad" and "cliché"


def test_the_vocabulary_ignores_test_sentences(put, crafted):
    put(TEXTS)
    first = Opinions(words=6, min_count=1).load("product", crafted)
    expected = Opinions(words=6, min_count=1).fit({"": first.x[:1]})("", first.x[:1]).toarray()
    put(TEXTS | {MEMBERS["tweets"]: b"1\t1\ta an awful lot of new words\n", MEMBERS["film"]: b""})
    again = Opinions(words=6, min_count=1).load("product", crafted)
    assert np.array_equal(Opinions(words=6, min_count=1).fit({"": again.x[:1]})("", again.x[:1]).toarray(), expected)
    unseen = Opinions(words=6, min_count=1).fit({"": again.x[:1]})("", again.x[1:])
    assert unseen.toarray().sum() == 1  # of "good price" only "price" was seen


@pytest.mark.parametrize(
    ("members", "inner", "what"),
    [
        (TEXTS, "elsewhere.tar.gz", f"not the expected archive: filename '{INNER}' not found"),
        ({name: TEXTS[name] for name in list(TEXTS)[1:]}, INNER, "amazonReviewSnippets_GroundTruth.txt' not found"),
        (TEXTS | {MEMBERS["film"]: None}, INNER, f"{FILM} is a link, a folder or too large"),
        (TEXTS | {MEMBERS["film"]: bytes(16_000_001)}, INNER, "is a link, a folder or too large"),
        (TEXTS | {MEMBERS["film"]: b"1\t1\tfine\n2\tno rating\n"}, INNER, f"{FILM}:2: no rating"),
        (TEXTS | {MEMBERS["film"]: b"1\t1\tfine\n\n"}, INNER, f"{FILM}:2: no rating"),
    ],
)
def test_files_missing_from_the_archive_are_named(put, crafted, members, inner, what):
    put(members, inner)
    assert what in only_line(Opinions().load, "film", crafted)


@pytest.mark.parametrize("damage", [lambda content: content[:200], lambda _: b"no archive", lambda _: b""])
def test_a_damaged_archive_is_named(put, crafted, damage):
    path = put(TEXTS)
    path.write_bytes(damage(path.read_bytes()))
    assert "not the expected archive" in only_line(Opinions().load, "film", crafted)
