"""What got worse, since when, and how sure that is: series of nights in, findings out.

Nights are the unit. The runs of one night share a machine, its load and its temperature, so they are no
independent witnesses, and count as their median. What a finding rests on:

    series           the history's tables as arrays, one series for each (suite, entry, metric)
    change_points    when a series took another level: ruptures proposes, an exact test decides
    tonight          one night against the level and the spread of the recent ones
    flakes           how often each expectation fails, and of what kind a failure is
    checking         all of them for one night, and as many errors as there are series to make them with

Everything but `checking` takes arrays and returns plain data, and reads no file.
"""
