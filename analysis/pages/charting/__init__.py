"""One model of a chart, and what draws it: uPlot on every page, matplotlib on paper."""
