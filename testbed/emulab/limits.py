"""What dedicated shaping nodes of Emulab can do, by its own FAQ ("What are the limits for link shaping?").

Sites differ and the FAQ is old, so a request beyond these limits is written all the same, with a note. What a
link really does is measured in every run.
"""

from collections.abc import Iterator

from testbed.emulab.request import SiteRequest
from topologies.quantities import DURATION, RATE
from topologies.shape import Shape

DELAY_US_MIN = 2_000
RATE_BITS_PER_S_MAX = 1_000_000_000


def doubts(request: SiteRequest) -> Iterator[str]:
    """A line for each link that asks for more than the FAQ promises."""
    for link in request.links:
        shapes = [shape for _, _, shape in link.shapes]
        for said in dict.fromkeys(said for shape in shapes for said in _of_shape(shape)):
            yield f"{link.name}: {said}"


def _of_shape(shape: Shape) -> Iterator[str]:
    if 0 < shape.delay_us < DELAY_US_MIN:
        asked, least = DURATION.format(shape.delay_us), DURATION.format(DELAY_US_MIN)
        yield f"{asked} is less than the {least} that Emulab promises"
    if shape.rate_bits_per_s is not None and shape.rate_bits_per_s > RATE_BITS_PER_S_MAX:
        asked, most = RATE.format(shape.rate_bits_per_s), RATE.format(RATE_BITS_PER_S_MAX)
        yield f"{asked} is more than the {most} that Emulab promises"
