"""The seven kinds of component, one file each; `msda_bench.api` is the public door."""
