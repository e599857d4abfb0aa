"""A pytest plugin: the fixture `cutset` makes runs in users' tests. docs/pytest.md explains its use.

pytest loads `hooks` in every project that shares an installation with Cutset: it is light, and does nothing
unless a test uses the fixture. `fixture` makes the runs, tests read `results`, `attachments` adds runs to
test reports.
"""
