"""Images of several domains, from files that the user supplies."""
