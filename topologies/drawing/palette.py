"""The colour of a region, the same in every figure of a run: plan, report, PNG and SVG.

The Okabe-Ito palette (Okabe and Ito, "Color Universal Design", 2008) can be distinguished by colour-blind
readers. It is ordered so that the first four colours stand out on white and on near-black. Regions beyond the
palette repeat its colours; `dash_of` then distinguishes them by their lines.
"""

BLUE, VERMILLION, GREEN, PURPLE = "#0072B2", "#D55E00", "#009E73", "#CC79A7"
ORANGE, SKY, YELLOW = "#E69F00", "#56B4E9", "#F0E442"
LIGHT = frozenset({ORANGE, SKY, YELLOW})
"""Colours on which dark letters are easier to read than white ones."""
REGION_COLOURS = (BLUE, VERMILLION, GREEN, PURPLE, ORANGE, SKY, YELLOW)
DASHES = ("solid", "dash", "dot", "dashdot")


def colour_of(region_index: int) -> str:
    """Return the colour, as #RRGGBB, of the region with this index (from 0) in its topology."""
    return REGION_COLOURS[region_index % len(REGION_COLOURS)]


def dash_of(region_index: int) -> str:
    """Return the dash style of a region's lines; solid for the first regions, one for each colour."""
    return DASHES[region_index // len(REGION_COLOURS) % len(DASHES)]
