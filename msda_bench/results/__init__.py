"""Results as data frames: from records to comparisons, tables, charts and the page."""
