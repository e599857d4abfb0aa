"""Captures as columns, without Spark: index, headers, TCP streams, messages; and a Spark source of them.

The order of the work: `compressed` (unpack what is), `format` and `pcapng` (what a capture file is), `walk`
(where records begin), `records` (what they are, whatever the format), `link_types` (what comes before IP),
`fields` (headers as columns), `fragments` (what IP cut), `index` (the sidecar that makes a capture
splittable), `batches` (all that as Arrow), `pieces` and `reassemble` (TCP directions), `frames` and `decode`
(messages), `streams` (per capture). Only `source` knows Spark; from `batches` on nothing knows formats.
"""
