"""Runs in other people's tests: the fixture `cutset` for pytest. How it is used stands in docs/pytest.md.

`hooks` is what pytest loads, in every project that shares an installation with Cutset: it is light, and does
nothing unless a test takes the fixture. `fixture` makes the runs, `figures` and `results` are what a test
reads, `attachments` what stands in its report.
"""
