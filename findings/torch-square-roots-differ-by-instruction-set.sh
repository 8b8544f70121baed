#!/usr/bin/env bash
# torch 2.13.0, CPU build with MKL, on x86-64.
# A square root is one of the five operations that IEEE 754 rounds correctly, so it should be the same on every machine.
# torch.sqrt of float32 goes through MKL's vector library, which rounds otherwise on some processors and instruction sets.
# Where MKL follows its variable: correctly with AVX2, not so in 19 % of numbers with SSE4.2 (and in 0.65 % where the
# processor has AVX-512). On an AMD EPYC with AVX-512: not so in 20 %, whatever MKL and torch are told to take. Adam divides
# by such roots: two machines differ from its first step, and a compiled loop that takes roots by the processor's own
# instruction differs from both.
# Output: of 1,000,000 roots, those that differ from NumPy's. Where MKL follows its variable: AVX2: 0; SSE4_2: 191,880. On
# the EPYC: 198,209 for both.
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/python" -m pip install -q torch==2.13.0 numpy
cat > "$folder/roots.py" <<'END'
import numpy as np
import torch

numbers = np.random.default_rng(0).random(1_000_000).astype(np.float32)
print((torch.from_numpy(numbers).sqrt().numpy() != np.sqrt(numbers)).sum())
END
avx=$(ATEN_CPU_CAPABILITY=avx2 MKL_ENABLE_INSTRUCTIONS=AVX2 "$folder/venv/bin/python" "$folder/roots.py")
sse=$(ATEN_CPU_CAPABILITY=default MKL_ENABLE_INSTRUCTIONS=SSE4_2 "$folder/venv/bin/python" "$folder/roots.py")
echo "AVX2: $avx of 1,000,000 differ; SSE4_2: $sse"
test "$sse" -gt 100000
