"""Two projects with one name do not share a result folder; an edited suite, or corrected data, go on in theirs."""

from msda_bench.cli.main import main
from tests.own import PLAIN, TABLE, suite


def test_a_folder_of_another_project_is_refused_and_stays_as_it_is(tmp_path, monkeypatch, capsys):
    def run(project, text, *words, **changes):
        folder = tmp_path / project
        folder.mkdir(exist_ok=True)
        (folder / "data.csv").write_text(text)
        path = suite(folder, "table", {"file": "data.csv", **TABLE}, **changes)
        code = main(["run", path, "--executor", "inline", *words])
        return code, capsys.readouterr().err

    monkeypatch.chdir(tmp_path)
    table = tmp_path / "results" / "mine" / "leaderboard.csv"
    assert run("one", PLAIN)[0] == 0
    before = table.read_bytes()
    other = PLAIN.replace("\na,", "\nnorth,").replace("\nb,", "\nsouth,")
    for words in ([], ["--dry-run"]):
        code, error = run("two", other, *words)
        what = "its 2 stored runs are of other data (table: a, b) than this suite's (table: north, south)"
        assert (code, what in error, "add --out FOLDER" in error) == (2, True, True)
    assert (table.read_bytes(), run("one", PLAIN, "--dry-run")) == (before, (0, ""))
    assert run("two", other, "--out", "elsewhere")[0] == 0
    # Another seed makes an edited suite, another number other data of the same project.
    code, error = run("one", PLAIN, seeds=2)
    assert (code, "changed" in error) == (0, False)
    code, error = run("one", PLAIN.replace("1.5", "2.5"))
    assert (code, "the data have changed, so that this suite has none of the 4 stored runs" in error) == (0, True)
    code, error = run("one", PLAIN.replace("\nb,", "\nc,"))
    assert (code, "write another `name` into the suite" in error) == (0, True)
