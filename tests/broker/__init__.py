"""A system of the tests' own, which nothing outside knows."""
