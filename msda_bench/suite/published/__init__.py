"""Tables of papers, as data: one file each, in this folder or next to a suite."""
