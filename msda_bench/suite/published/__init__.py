"""Tables of papers, as data: a file each, in this folder or beside a suite."""
