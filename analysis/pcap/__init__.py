"""Captures as columns, without Spark: index, header fields, TCP streams, messages; and the Spark source of them.

The order of the work is `format` (what a classic pcap is) -> `walk` (where records begin) -> `index` (the sidecar
that makes a capture splittable) -> `fields` (headers as columns) -> `segments` and `reassemble` (TCP directions)
-> `decode` (messages). Only `source` knows Spark.
"""
