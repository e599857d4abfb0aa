"""Faults of an experiment, one class per kind. Times count from time 0 of the run.

To add a kind, add a module to this folder with a class that has a `kind`, which is not the name of a field of
another kind, and a line to docs/faults.md, which is also the input of the tests. Nothing else lists kinds.
For example `jitter_spike.py`:

    \"""A fault that makes the delay of a link longer and unsteady.\"""

    from typing import Any, ClassVar

    from pydantic import Field

    from experiments.faults.links import OneLinkFault
    from topologies.model import LinkReference
    from topologies.strict import DurationUs


    class JitterSpike(OneLinkFault):
        \"""Makes the delay of a link longer and unsteady.\"""

        kind: ClassVar[str] = "jitter_spike"
        link: LinkReference = Field(alias="jitter_spike")
        \"""The two regions that the link joins, or its name.\"""
        delay_us: DurationUs = Field(gt=0)
        \"""The delay meanwhile; half of it is the jitter.\"""

        def values(self) -> dict[str, Any]:
            \"""Return the link parameters that it changes.\"""
            return {"delay_us": self.delay_us, "jitter_us": self.delay_us // 2}

It is then a fault `{at: 5s, for: 2s, jitter_spike: [r2, r3], delay: 80ms}`: `OneLinkFault` has `for`,
`direction`, the restore and the checks; the plan, the schema, `cutset shell` and the report have it. Random
faults are kinds of their own, each with its repair (`experiments.nemesis`, `experiments.hunting.case`), and
do not include it. A kind on a process derives from `StateFault` in `environment.py` and needs two actions:
`experiments.planned.changes.ProcessAction` says where they stand.
"""
