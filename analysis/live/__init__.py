"""The timelines of a run while it goes on: parts of captures in, through Spark's Structured Streaming, a page
and a line in the terminal out.

It runs as a process of its own (`python -m analysis.live`), which `cutset run --live` starts and tells how
the run goes. Nothing that it finds is kept: the analysis after the run reads the whole captures.
"""
