"""The morning page: a static site over the history of nights, which answers in ten seconds whether something
got worse, what, since when, and which commits to look at.
"""

from analysis.pages.nights.site import write_site

__all__ = ["write_site"]
