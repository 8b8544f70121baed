#!/usr/bin/env bash
# pyRiemann 0.12, pyriemann.transfer.
# Its steps take labels that carry the domain, so a target without labels cannot be given at all: some label must stand
# there. TLClassifier without domain_weight, which is its default, trains on those as on any other, and TLRotate turns
# the sources so that their class means meet the means of those labels: right labels of the target, which is what an
# example with a whole dataset gives it, lift it to 1.00, random ones push it below chance. TLCenter does not look.
# Output (accuracy on the target with its own labels given; with the same labels in random order): sources alone 0.36,
# 0.36; TLCenter 0.97, 0.97; no domain_weight 0.58, 0.47; TLCenter and TLRotate 1.00, 0.12.
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/python" -m pip install -q pyriemann==0.12 scikit-learn==1.9.1
"$folder/venv/bin/python" -W ignore - <<'END'
import numpy as np
from pyriemann.classification import MDM
from pyriemann.transfer import TLCenter, TLClassifier, TLDummy, TLRotate, encode_domains
from sklearn.pipeline import make_pipeline

draw = np.random.default_rng(0)


def covariances(label, mixing, count=40):
    scales = np.array([1.0, 1.0, 1.0, 1.0])
    scales[label] = 1.8
    signals = mixing @ (scales[:, None] * draw.normal(size=(count, 4, 30)))
    return signals @ signals.transpose(0, 2, 1) / 30


parts, labels, domains = [], [], []
for domain in ("one", "two", "target"):
    mixing = np.eye(4) + (0.4 if domain == "target" else 0.1) * draw.normal(size=(4, 4))
    for label in range(3):
        parts.append(covariances(label, mixing))
        labels += [str(label)] * 40
        domains += [domain] * 40
x, y, domain = np.concatenate(parts), np.array(labels), np.array(domains)
target = domain == "target"
drawn = y.copy()
drawn[target] = draw.permutation(y[target])

sources = {"one": 1.0, "two": 1.0, "target": 0.0}
steps = {
    "sources alone": ([TLDummy()], sources),
    "TLCenter": ([TLCenter("target")], sources),
    "no domain_weight": ([TLDummy()], None),
    "TLCenter, TLRotate": ([TLCenter("target"), TLRotate("target")], sources),
}
found = {}
for name, (before, weights) in steps.items():
    scores = []
    for given in (y, drawn):
        encoded = encode_domains(x, given, domain)
        model = make_pipeline(*before, TLClassifier("target", MDM(), domain_weight=weights)).fit(*encoded)
        scores.append((model.predict(x[target]) == y[target]).mean())
    found[name] = scores
    print("%s: %.2f, %.2f" % (name, *scores))
for name in ("sources alone", "TLCenter"):
    right, random = found[name]
    assert right == random
for name in ("no domain_weight", "TLCenter, TLRotate"):
    right, random = found[name]
    assert right > random + 0.08
END
