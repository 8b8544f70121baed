"""Shows results: charts (`msda_bench.plots`), the report page of a folder, and the site of many."""
