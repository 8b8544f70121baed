"""Many result folders as one static site: `msda-bench site`."""
