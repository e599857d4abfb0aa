"""HTML pages: a run's report, a sweep's report, comparisons of runs, the summary of a night; and diagrams."""
