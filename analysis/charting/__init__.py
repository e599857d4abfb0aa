"""Small charts that need no script to be seen: SVG paths that stretch with the page, labels as plain HTML.

They are for pages with many charts (the nights' site) or few needs (a comparison of runs); the report of one
run, through which people zoom, is drawn with plotly. A script (assets/chart.js) reads values out under the
pointer where scripts run.
"""
