"""Captures as columns, without Spark: index, headers, TCP streams, messages; and a Spark source of them.

The order of the work: `format` (what a pcap is), `walk` (where records begin), `index` (the sidecar that
makes a capture splittable), `fields` (headers as columns), `batches` (those as Arrow), `reassemble` (TCP
directions), `frames` and `decode` (messages), `streams` (all of it, per capture). Only `source` knows Spark.
"""
