"""TLS connections of one host's capture, read with the keys that programs logged.

`records` cuts a reassembled stream into records. `sessions` pairs the two streams of a connection and writes
their records to captures for `tshark`, which decrypts them. `plaintext` finds markers in the plaintext.
`events` coordinates these. Unreadable records are counted with the reason, which
`analysis.capture.unread` reports for a run.
"""
