"""The method, trained alone, is ranked among the recorded ones, as docs/verify.md shows."""

import subprocess
import sysconfig
from pathlib import Path

FOLDER = Path(__file__).parent.parent
PROGRAM = Path(sysconfig.get_path("scripts")) / "msda-bench"


def test_is_ranked_among_the_recorded_methods(tmp_path):
    words = ("run", "poisoned/fonts-poisoned", "--methods", FOLDER / "ranked.yaml", "--against", "reference")
    done = subprocess.run(
        [PROGRAM, *words, "--out", tmp_path, "--device", "cpu"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    said = " ".join(done.stdout.split())
    assert "verdict: fonts-poisoned: InverseRisk is number " in said
    assert " of 25 by the mean (" in said
    assert "Against d_A-uniform, which has the same discrepancy and uniform weights: " in said
