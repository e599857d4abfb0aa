"""The colour of a region, the same in every figure of a run: plan, report, PNG and SVG.

The Okabe-Ito palette (Okabe and Ito, "Color Universal Design", 2008), which colour-blind readers can tell
apart, ordered so that the first four stand out on white and on near-black. Regions beyond the palette take
its colours again; `dash_of` then tells them apart by their line.
"""

BLUE, VERMILLION, GREEN, PURPLE = "#0072B2", "#D55E00", "#009E73", "#CC79A7"
ORANGE, SKY, YELLOW = "#E69F00", "#56B4E9", "#F0E442"
LIGHT = frozenset({ORANGE, SKY, YELLOW})
"""On these, dark letters are read better than white ones."""
REGION_COLOURS = (BLUE, VERMILLION, GREEN, PURPLE, ORANGE, SKY, YELLOW)
DASHES = ("solid", "dash", "dot", "dashdot")


def colour_of(region_index: int) -> str:
    """Colour of the region that stands at this index (from 0) in its topology, as #RRGGBB."""
    return REGION_COLOURS[region_index % len(REGION_COLOURS)]


def dash_of(region_index: int) -> str:
    """How that region's lines are dashed: solid for as many regions as there are colours."""
    return DASHES[region_index // len(REGION_COLOURS) % len(DASHES)]
