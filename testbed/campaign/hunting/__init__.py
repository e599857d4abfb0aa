"""A hunt: many cases in virtual time on all processors, guided by what was new, and what came of them."""
