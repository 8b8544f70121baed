"""The report page: a result folder as one file that loads nothing."""
