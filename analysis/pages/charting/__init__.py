"""A common model of charts, and its renderers: uPlot on pages, matplotlib for figures."""
