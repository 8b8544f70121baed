#!/usr/bin/env bash
# skada 0.6.0 with skorch 1.4.0, torch 2.13.0: the critic that DANN makes by itself (DomainClassifier).
# Its last layer has one output, followed by a softmax over that single number, which is 1 whatever the features are and
# has no gradient. So DANN with its default critic adapts nothing: two domains ten standard deviations apart look alike to
# it, and no gradient reaches the features. CDAN takes the same critic.
# Output: all critic outputs 1.0, largest gradient of its weights 0.0.
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/python" -m pip install -q skada==0.6.0 skorch==1.4.0 torch==2.13.0
"$folder/venv/bin/python" -W ignore - <<'END'
import torch
from skada.deep.modules import DomainClassifier

torch.manual_seed(0)
features = torch.randn(200, 5)
domain = torch.arange(200) % 2
features[domain == 1] += 10.0
critic = DomainClassifier(num_features=5)
outputs = critic(features)
torch.nn.functional.binary_cross_entropy(outputs.flatten(), domain.float()).backward()
gradients = [float(weight.grad.abs().max()) for weight in critic.parameters() if weight.grad is not None]
print("outputs:", sorted({round(float(one), 6) for one in outputs.flatten()}), "| largest gradient:", max(gradients))
assert (outputs == 1).all()
assert max(gradients) == 0.0
END
