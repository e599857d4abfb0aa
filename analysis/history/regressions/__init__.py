"""Regressions: what got worse, since when, and with what confidence. Series of nights in, findings out.

Nights are the unit. The runs of one night share a machine, its load and its temperature, so they are not
independent, and count as their median. A finding is built from these modules:

  series           the history's tables as arrays, one series for each (suite, entry, metric)
  change_points    when a series moved to another level: ruptures proposes, an exact test decides
  tonight          one night against the level and the spread of the recent ones
  checking         all of them for one night, corrected for the number of series

All modules but `checking` take arrays, return plain data, and read no files.
"""
