"""Captures as columns, without Spark: index, headers, TCP streams, messages; and a Spark source of them.

The steps: `compressed` (decompression), `format` and `pcapng` (file formats), `walk` (offsets of records),
`records` (records independent of the format), `encapsulation` (headers in front of IP), `fields` (headers as
columns), `uncommon` and `protocol_names` (what is only counted), `fragments` (IP fragments), `index` (the
sidecar that makes a capture splittable), `record_batches` (Arrow batches), `byte_ranges` and `reassemble`
(TCP directions), `frames` and `decode` (messages), `streams` (whole captures). Only `source` uses Spark; from
`record_batches` on no step depends on file formats.
"""
