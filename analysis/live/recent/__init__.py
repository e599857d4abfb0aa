"""Recent messages of a running run, from the newest parts of growing captures.

The complete analysis starts at each connection's beginning. Here only the last seconds are read, so the cost
does not grow with the run. `beginnings` finds the first message in the middle of a stream; then
`recent_messages` decodes and matches messages as the analysis of the whole run does.
"""
