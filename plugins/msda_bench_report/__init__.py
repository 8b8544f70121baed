"""Shows results: charts, the report page of a folder, and the site of many."""
