"""A table as clinics send it: four of them, each at its own level, with what people forget to take out."""

import csv

import numpy as np

COLUMNS = ["id", "clinic", "admitted", "age", "bmi", "glucose", "crp", "sex", "smoker", "department", "readmitted"]
CLINICS = ("North", "St. Mary", "Lakeside", "Old Town")
MISSING = {"North": 0.03, "St. Mary": 0.06, "Lakeside": 0.09, "Old Town": 0.13}
SICK = {"North": 0.35, "St. Mary": 0.44, "Lakeside": 0.56, "Old Town": 0.27}


def write(path, rows=400):
    """Writes `4 * rows` patients: glucose is in mg/dl in Old Town and in mmol/l elsewhere."""
    rng = np.random.default_rng(7)
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(COLUMNS)
        for place, clinic in enumerate(CLINICS):
            for _ in range(rows):
                writer.writerow([f"P{rng.integers(10**8):08d}", clinic, *patient(rng, place, clinic)])


def patient(rng, place, clinic):
    """One row without its identifier: the risk is the same everywhere, the level of the numbers is not."""
    day = np.datetime64("2021-01-01") + int(rng.integers(700))
    z = rng.normal(size=4)
    scale = 14 if clinic == "Old Town" else 1
    age, bmi = 50 + 8 * place + 12 * z[0], 24 + 2 * place + 4 * z[1]
    glucose, crp = scale * (5.4 + 0.5 * place + 0.9 * z[2]), np.exp(0.5 * place + z[3])
    smoker = rng.random() < 0.3
    risk = 0.9 * z[0] + 0.5 * z[1] + z[2] + 0.8 * z[3] + 0.8 * smoker + rng.logistic()
    sick = risk > 2.4 * np.log(1 / SICK[clinic] - 1)
    texts = [str(int(age)), f"{bmi:.1f}", f"{glucose:.1f}", f"{crp:.1f}"]
    texts += [rng.choice(["f", "m"]), "yes" if smoker else "no", rng.choice(["surgery", "internal", "heart"])]
    gaps = rng.random(len(texts)) < MISSING[clinic]
    return [day, *("" if gap else text for text, gap in zip(texts, gaps, strict=True)), "yes" if sick else "no"]
