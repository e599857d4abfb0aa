"""The morning page: a static site over the history of nights.

Its first screen shows what got worse, since when, and which commits to inspect.
"""

from analysis.pages.nights.site import write_site

__all__ = ["write_site"]
