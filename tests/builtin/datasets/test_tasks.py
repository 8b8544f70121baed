"""Opinions, reviews, tweets, sounds, gases, a watch, commands to a home: crafted files in the published form."""

import hashlib
import io
import itertools
import json
import lzma
import pickle
import sys
import wave
from dataclasses import replace

import numpy as np
import pytest

from msda_bench.api import Task
from msda_bench.cli.main import main
from msda_bench.data import LocalFiles
from msda_bench_builtin.datasets import Amazon, Crises, GasDrift, Intents, Opinions, SpokenDigits, Watch
from msda_bench_builtin.datasets.intents import sentences
from tests.builtin.conftest import tarred, zipped
from tests.data.conftest import Site, only_line, serving

MEMBERS = {
    "product": "hutto_ICWSM_2014/amazonReviewSnippets_GroundTruth.txt",
    "film": "hutto_ICWSM_2014/movieReviewSnippets_GroundTruth.txt",
    "editorial": "hutto_ICWSM_2014/nytEditorialSnippets_GroundTruth.txt",
    "tweets": "hutto_ICWSM_2014/tweets_GroundTruth.txt",
}
INNER = "vaderSentiment-3.3.2/additional_resources/hutto_ICWSM_2014.tar.gz"
TEXTS = {
    MEMBERS["product"]: b"1_1\t-0.9\tbad bad price\r\n1_2\t0.4\tso so\r\n1_3\t2.5\tgood price\r\n",
    MEMBERS["film"]: "1\t0.5\tun clich\u00e9\r\n2\t-0.5\tbad\tfilm".encode(),
    MEMBERS["editorial"]: b"1\t0\tnothing\n",
    MEMBERS["tweets"]: b"1\t-2.0\tbad clich\xe9\x81\n",
}


OTHER = [
    (Amazon(), "dvd", "dvd_train.svmlight", b"1 1\n", "not the expected reviews"),
    (Opinions(), "film", "vaderSentiment-3.3.2.tar.gz", tarred({"other": b""}), "not the expected archive"),
    (Watch(), "person_1", "seglearn-1.2.5-py3-none-any.whl", b"", "not the expected recordings"),
    (SpokenDigits(), "theo", "recordings.tar", tarred({}), "cannot be read"),
    (Intents(), "en", "home_assistant_intents-2026.10.27-py3-none-any.whl", zipped({}), "not the expected sentences"),
    (Crises(), "boston_bombings", "CrisisLexT6-v1.0.zip", zipped({})[:9], "not the expected tweets"),
]


@pytest.mark.parametrize(("data", "domain", "name", "content", "what"), OTHER)
def test_other_contents_are_one_line_that_names_the_file(crafted, tmp_path, data, domain, name, content, what):
    (tmp_path / name).write_bytes(content)
    line = only_line(data.load, domain, crafted)
    assert line.startswith(f"{tmp_path / name}: ")
    assert what in line


def put(folder, members=()):
    (folder / "vaderSentiment-3.3.2.tar.gz").write_bytes(tarred({INNER: tarred(TEXTS | dict(members))}))


def bags(*parts, train=None, **options):
    """The words of parts as a network gets them, learned from all of their rows or from some first ones."""
    data = Opinions(**{"words": 3, "min_count": 1} | options)
    learned = data.fit({str(place): part.x[:train] for place, part in enumerate(parts)})
    return [learned("", part.x).toarray().tolist() for part in parts]


def test_crafted_sentences_have_their_labels_and_texts(tmp_path, crafted):
    """Lines that are not UTF-8 are read as Western European."""
    put(tmp_path)
    product, film, tweets = (Opinions(ngrams=1).load(domain, crafted) for domain in ("product", "film", "tweets"))
    assert [part.y.tolist() for part in (product, film)] == [[0, 1], [1, 0]]
    assert Opinions(margin=0.0).load("product", crafted).y.tolist() == [0, 1, 1]
    rated = Opinions(mode="regression").load("product", crafted)
    assert rated.y.tolist() == np.array([-0.9, 0.4, 2.5], np.float32).tolist()
    assert Opinions(mode="regression").task == Task("regression")
    assert [*product.texts, *film.texts] == ["bad bad price", "good price", "un clich\u00e9", "bad\tfilm"]
    assert list(rated.texts) == ["bad bad price", "so so", "good price"]
    assert bags(product) == [[[1, 1, 0], [1, 0, 1]]]  # price, bad and good, the first in both
    assert bags(product, binary=False) == [[[1, 2, 0], [1, 0, 1]]]
    assert bags(product, min_count=2) == [[[1, 0, 0], [1, 0, 0]]]
    assert bags(film, tweets, words=2, min_count=2)[1] == [[1, 1]]  # "bad" and "cliché"
    assert np.sum(bags(product, train=1, words=6)[0][1]) == 1  # of "good price" only "price" was seen


def dvds(folder, train, test=b"-1 2:3\n"):
    for part, content in (("train", train), ("test", test)):
        (folder / f"dvd_{part}.svmlight").write_bytes(content)


def test_reviews_are_read_the_train_file_before_the_test_file(crafted, tmp_path):
    dvds(tmp_path, b"1 0:6 7:12 4999:1\n-1 3:2\n+1 \n-1\n")
    data = Amazon().load("dvd", crafted)
    assert data.y.tolist() == [1, 0, 1, 0, 0]
    assert (data.x.shape, data.x.dtype) == ((5, 5000), np.float32)
    assert data.x.indices.tolist() == [0, 7, 4999, 3, 2]
    assert data.x.data.tolist() == [6, 12, 1, 2, 3]
    assert data.x.indptr.tolist() == [0, 3, 4, 4, 4, 5]


def watched(folder, content):
    packed = zipped({"seglearn/data/watch_dataset.npy": content})
    (folder / "seglearn-1.2.5-py3-none-any.whl").write_bytes(packed)


def npy(held):
    """As numpy pickles an object; a `bytes` is a pickle itself."""
    stream = io.BytesIO()
    np.lib.format.write_array_header_1_0(stream, {"descr": "|O", "fortran_order": False, "shape": ()})
    stream.write(held if isinstance(held, bytes) else pickle.dumps(np.array(held, dtype=object), protocol=2))
    return stream.getvalue()


def test_the_watchs_windows_are_two_seconds_half_overlapping_with_ten_statistics_an_axis(crafted, tmp_path):
    ramp = np.tile(np.arange(260.0)[:, None], (1, 6))
    wave_ = np.tile(np.where(np.arange(149) % 2, 1.0, -1.0)[:, None], (1, 6))
    watched(tmp_path, npy({"X": [ramp, wave_], "y": np.array([4, 2]), "subject": np.array([1, 1])}))
    loaded = Watch().load("person_1", crafted)
    assert (loaded.y.tolist(), loaded.groups.tolist()) == ([4, 4, 4, 4, 2], [0, 0, 0, 0, 1])
    numbers = loaded.x.reshape(5, 10, 6)
    assert (numbers == numbers[:, :, :1]).all()
    mean, std, least, greatest, low, middle, high, change, square, crossings = numbers[:, :, 0].T
    assert mean.tolist() == middle.tolist() == [49.5, 99.5, 149.5, 199.5, 0]
    assert (least.tolist(), greatest.tolist()) == ([0, 50, 100, 150, -1], [99, 149, 199, 249, 1])
    np.testing.assert_allclose((std[1], low[0], high[0]), (np.arange(100).std(), 24.75, 74.25), rtol=1e-6)
    assert (change.tolist(), square[4], crossings[4]) == ([1, 1, 1, 1, 2], 1, 1)
    np.testing.assert_allclose(crossings[:4], 1 / 99)
    raw = Watch(form="signals", standardise="pooled")
    signals = raw.load("person_1", crafted).x
    assert (signals.shape, raw.input.shape) == ((5, 6, 100), (6, 100))
    np.testing.assert_array_equal(signals[1, 3], np.arange(50, 150))
    made = raw.fit({"person_1": signals})("person_1", signals)
    np.testing.assert_allclose((made.mean((0, 2)), made.std((0, 2))), ([0] * 6, [1] * 6), atol=1e-5)


@pytest.mark.parametrize(
    ("module", "name", "args", "what"),
    [
        ("posix", "system", ("touch hacked",), "it names posix.system"),
        ("builtins", "eval", ("1",), "it names builtins.eval"),
        ("antigravity", "fly", (), "it names antigravity.fly"),
        ("numpy", "load", ("x.npy",), "it names numpy.load"),
        ("numpy.core.multiarray", "scalar", (), "it names numpy.core.multiarray.scalar"),
        ("numpy", "dtype.type", (), "it names numpy.dtype.type"),
        ("_codecs", "decode", ("a", "zlib"), "it names _codecs.decode"),
        ("_codecs", "encode", ("a", "rot13"), "it encodes a text as 'rot13'"),
    ],
)
def test_a_pickle_may_name_nothing_but_arrays_and_imports_nothing(
    crafted, tmp_path, monkeypatch, module, name, args, what
):
    monkeypatch.chdir(tmp_path)
    called = "".join(f"V{text}\n" for text in args)  # any function, by its name
    watched(tmp_path, npy(f"c{module}\n{name}\n({called}tR.".encode()))
    before = set(sys.modules)
    assert what in only_line(Watch().load, "person_1", crafted)
    assert not [new for new in set(sys.modules) - before if new.partition(".")[0] in {"antigravity", "encodings"}]
    assert not (tmp_path / "hacked").exists()


def sound(samples):
    stream = io.BytesIO()
    with wave.open(stream, "wb") as writer:
        writer.setparams((1, 2, 8000, 0, "NONE", ""))
        writer.writeframes((samples * 2**14).astype("<i2").tobytes())
    return stream.getvalue()


def recordings(folder, of_digits):
    """All recordings of a digit are the same."""
    members = {}
    for digit, who, take in itertools.product(range(10), SpokenDigits().domains, range(50)):
        members[f"top/recordings/{digit}_{who}_{take}.wav"] = of_digits[digit]
    (folder / "recordings.tar").write_bytes(tarred(members))


def test_a_tone_is_loudest_in_its_band_at_all_times(crafted, tmp_path):
    times = np.arange(480) / 8000
    recordings(tmp_path, [sound(np.sin(2 * np.pi * 300 * (digit + 1) * times)) for digit in range(10)])
    loaded = SpokenDigits().load("theo", crafted)
    assert loaded.y.tolist() == [digit for digit in range(10) for _ in range(50)]
    loudest = np.asarray(loaded.x).reshape(500, 32, 40).argmax(2)
    assert (loudest == loudest[:, :1]).all()
    mel = 2595 * np.log10(1 + 300 * (loaded.y + 1) / 700)
    middles = 2595 * np.log10(1 + 4000 / 700) * np.arange(1, 41) / 41
    nearest = abs(middles - mel[:, None]).argmin(1)
    assert abs(loudest[:, 0] - nearest).max() <= 1


def test_a_trimmed_recording_is_that_without_its_ends(crafted, tmp_path):
    tone = np.sin(np.arange(960))
    click = np.concatenate([np.full(80, 1.5), tone, np.full(80, -1.5)])
    loaded = []
    for samples, trim in ((click, 0.01), (tone, 0.0)):
        recordings(tmp_path, [sound(samples)] * 10)
        loaded.append(SpokenDigits(trim=trim).load("theo", crafted).x)
    np.testing.assert_array_equal(*loaded)


INTENTS = (
    *(f"Hass{what}Timer" for what in ("Start", "Increase", "Decrease", "Pause", "Unpause", "Cancel")),
    *(f"Hass{what}" for what in ("TurnOn", "TurnOff", "LightSet", "GetState", "TimerStatus", "MediaNext")),
    *(f"Hass{what}" for what in ("MediaPrevious", "ClimateGetTemperature", "ClimateSetTemperature")),
)


def language(folder, template, **rules):
    """A wheel with two templates for each intent in English, all the same."""
    lists = {
        "colour": {"values": [{"in": "red"}, {"in": "(dark|light) blue"}]},
        "size": {"range": {"from": 2, "to": 6, "step": 2}},
        "item": {"wildcard": True},
    }
    part = {"data": [{"sentences": [template]}, {"sentences": [template]}]}
    held = {"intents": dict.fromkeys(INTENTS, part), "lists": lists, "expansion_rules": rules}
    path = folder / "home_assistant_intents-2026.10.27-py3-none-any.whl"
    path.write_bytes(zipped({"home_assistant_intents/data/en.json": json.dumps(held).encode()}))
    return path


@pytest.mark.parametrize(
    ("template", "said"),
    [
        ("turn[ing] (on|off)", {"turn on", "turn off", "turning on", "turning off"}),
        ("{colour:slot}", {"red", "dark blue", "light blue"}),
        ("at {size}[ ]%", {f"at {size}{space}%" for size in (2, 4, 6) for space in ("", " ")}),
        ("<verb> {item}", {f"{verb} {item}" for verb in ("go", "stop") for item in ("red", "dark blue", "light blue")}),
        ("(a;b;c)", {"a b c", "a c b", "b a c", "b c a", "c a b", "c b a"}),
        ("x|[y|z] w", {"x", "w", "y w", "z w"}),
    ],
)
def test_all_sentences_of_a_template_and_no_others_are_said(tmp_path, template, said):
    path = language(tmp_path, template, verb="(go|<halt>)", halt="stop")
    made = sentences(path, "en", len(said))
    assert [sentence.intent for sentence in made] == [place for place in range(15) for _ in said]
    for place in range(15):
        mine = made[place * len(said) : (place + 1) * len(said)]
        assert {sentence.text for sentence in mine} == said
    assert {one.template for one in made} <= {f"en {intent} {number}" for intent in INTENTS for number in (0, 1)}
    assert f"has only {len(said)} different sentences" in only_line(sentences, path, "en", len(said) + 1)


def test_characters_are_counted_in_groups_of_two_to_the_longest(crafted, tmp_path):
    language(tmp_path, "(AB|abab)")
    short, long = Intents(per_intent=2, longest=3, columns=100_000).load("en", crafted).x[:2].toarray()
    short, long = sorted((short, long), key=np.sum)
    assert np.sort(short[short > 0]).tolist() == [1] * 5  # " a", "ab", "b ", " ab", "ab "
    assert np.sort(long[long > 0]).tolist() == [1] * 7 + [2]  # "ab" twice
    assert long[short > 0].tolist().count(0) == 0


FOLDERS = {
    "hurricane_sandy": "2012_Sandy_Hurricane",
    "alberta_floods": "2013_Alberta_Floods",
    "boston_bombings": "2013_Boston_Bombings",
    "oklahoma_tornado": "2013_Oklahoma_Tornado",
    "queensland_floods": "2013_Queensland_Floods",
    "texas_explosion": "2013_West_Texas_Explosion",
}
TEN = "one two three four five six seven eight nine ten"


def tweets(folder, **of_domain):
    """An archive in which the given domains have these rows of text and label, and the others none."""
    members = {}
    for domain, name in FOLDERS.items():
        lines = [f"\"'{number}'\",{row}\n" for number, row in enumerate(of_domain.get(domain, ()))]
        members[f"CrisisLexT6/{name}/{name}-ontopic_offtopic.csv"] = "".join(["tweet id, tweet, label\n", *lines])
    (folder / "CrisisLexT6-v1.0.zip").write_bytes(zipped(members))


def test_copies_of_a_tweet_are_a_group_in_all_domains_and_names_and_links_are_no_words(crafted, tmp_path):
    tweets(
        tmp_path,
        alberta_floods=[
            '"Water, &amp; more WATER http://t.co/a1",on-topic',
            '"RT @someone_1: water &amp; more water",on-topic',
            "water,off-topic",
            f"{TEN} eleven,off-topic",
            f"RT @other: {TEN} el\u2026,off-topic",
        ],
        texas_explosion=[
            "@someone_1 More water,off-topic",
            '"water and\nmore water",on-topic',
            "water more water,on-topic",
        ],
    )
    data = Crises(words=4, ngrams=1, min_count=1, binary=False)
    alberta, texas = (data.load(domain, crafted) for domain in ("alberta_floods", "texas_explosion"))
    assert (alberta.y.tolist(), texas.y.tolist()) == ([1, 1, 0, 0, 0], [0, 1, 1])
    first, again, other, long, cut = alberta.groups.tolist()
    assert first == again == texas.groups[2]
    assert long == cut
    assert len({first, other, long, *texas.groups[:2].tolist()}) == 5
    # Words of all tweets in alphabetical order: and, el, eight, eleven, ...; "water" and "more" are the most frequent.
    bag = data.fit({"alberta_floods": alberta.x[:3], "texas_explosion": texas.x})
    assert bag("alberta_floods", alberta.x[:3]).toarray().tolist() == [[2, 1, 0, 0], [2, 1, 0, 0], [1, 0, 0, 0]]
    assert bag("texas_explosion", texas.x).toarray().tolist() == [[1, 1, 0, 0], [2, 1, 1, 0], [2, 1, 0, 0]]


def smelled(rows, form):
    """A batch with so many measurements, by the gases in turn: row i has i + place in the place-th column, from 0."""
    gases = ("Ethanol", "Ethylene", "Ammonia", "Acetaldehyde", "Acetone", "Toluene")
    lines = []
    for row in range(rows):
        ppm, values = f"{10.0 * (1 + row % 3):f}", [f"{row + place:f}" for place in range(128)]
        if form == "uci":
            pairs = " ".join(f"{place}:{value}" for place, value in enumerate(values, 1))
            lines.append(f"{row % 6 + 1};{ppm} {pairs} ")
        else:
            lines.append(",".join([gases[row % 6], ppm, *values]))
    return "".join(f"{line}\n" for line in lines).encode()


@pytest.mark.parametrize("form", ["plain", "xz", "uci"])
def test_all_forms_of_a_batch_of_gases_are_the_same_measurements(crafted, tmp_path, form):
    content = smelled(161, form)
    if form == "uci":
        (tmp_path / "uci.zip").write_bytes(zipped({"Dataset/batch4.dat": content, "batch14.dat": b""}))
    else:
        (tmp_path / "batch4.dat.xz").write_bytes(lzma.compress(content) if form == "xz" else content)
    gases = GasDrift(copies="uci" if form == "uci" else "github")
    loaded = gases.load("batch_4", crafted)
    assert loaded.x.dtype == np.float32
    np.testing.assert_array_equal(loaded.x, np.add.outer(np.arange(161), np.arange(128)))
    assert loaded.y.tolist() == [row % 6 for row in range(161)]
    amounts = replace(gases, mode="regression").load("batch_4", crafted)
    np.testing.assert_allclose(amounts.y, np.log10(10.0 * (1 + np.arange(161) % 3)), rtol=1e-6)
    assert ("batch_7" in gases.domains) == (form == "uci")


@pytest.mark.parametrize(
    ("content", "what"),
    [
        (smelled(160, "plain"), "holds 160 measurements of batch_4, expected 161; replace the file"),
        (b"Xenon,1" + b",2" * 128, "line 1 is not a gas, its concentration and 128 numbers"),
        (b"Toluene,1" + b",2" * 127, "line 1 is not a gas, its concentration and 128 numbers"),
        (b"Toluene,1" + b",2" * 127 + b",x", "could not convert"),
        (b"Toluene,0" + b",2" * 128, "a concentration is not above 0"),
        (b"Toluene,1" + b",nan" * 128, "a number is not finite"),
        (b"6;1" + b" 2:2" * 128, "line 1 has value '2' in the place of 1"),
        (lzma.compress(smelled(161, "plain"))[:-50], "batch_4 cannot be read: "),
        (zipped({"batch5.dat": b""}), "it holds no batch4.dat"),
    ],
)
def test_other_contents_of_a_batch_are_one_line(crafted, tmp_path, content, what):
    (tmp_path / "batch4.dat.xz").write_bytes(content)
    assert what in only_line(GasDrift().load, "batch_4", crafted)


def test_ucis_archive_is_read_with_its_checksum_alone(where):
    (where.given / "gas_drift").mkdir()
    (where.given / "gas_drift" / "uci.zip").write_bytes(content := zipped({"batch4.dat": smelled(161, "uci")}))
    line = only_line(GasDrift(copies="uci").load, "batch_4", LocalFiles(where))
    digest = hashlib.sha256(content).hexdigest()
    assert f"not read, since no checksum was given; it has sha256 {digest}" in line
    assert len(GasDrift(copies="uci", sha256=digest).load("batch_4", LocalFiles(where)).y) == 161


def test_real_tweets_and_gases_are_fetched_over_http(real, tmp_path, monkeypatch):
    """A batch of gases is compressed on this machine, and plain where it is fetched from."""
    pages, here = {}, real(GasDrift())
    for data, files in ((Crises(), real(Crises())), (GasDrift(), here)):
        for file in data.files:
            content = files.path(file).read_bytes()
            pages[f"/{file.path}"] = lzma.decompress(content) if content.startswith(b"\xfd7zXZ") else content
    expected = GasDrift().load("batch_5", here)
    monkeypatch.delenv("MSDA_BENCH_DATA", raising=False)
    monkeypatch.setenv("MSDA_BENCH_CACHE", str(tmp_path / "cache"))
    with serving(Site(pages)) as served:
        monkeypatch.setenv("MSDA_BENCH_MIRROR", served.address)
        assert main(["data", "fetch", "crises", "gas_drift"]) == 0
    assert len(served.asked) == len(pages) == 9
    assert main(["data", "verify", "crises", "gas_drift"]) == 0
    fetched = GasDrift().load("batch_5", LocalFiles())
    np.testing.assert_array_equal(fetched.x, expected.x)
    assert fetched.y.tolist() == expected.y.tolist()
