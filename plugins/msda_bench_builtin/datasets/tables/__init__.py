"""Tables and arrays of the user's own, and tasks that are tables."""
