"""The seven kinds of component, one file each; plugins import them from `msda_bench.api`."""
