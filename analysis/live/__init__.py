"""The timelines of a running run: reads what clients record, and shows a page and a line in the terminal.

It is a separate process (`python -m analysis.live`), which `cutset run --live` starts and sends the progress
of the run. It stores no results: the analysis after the run reads the whole captures.
"""
