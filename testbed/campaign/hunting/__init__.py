"""A hunt: many cases, in virtual time on all processors or on real processes, guided by what was new, and
what came of them.
"""
