"""TLS connections of one host's capture, read with the keys that programs logged.

`records` cuts a reassembled stream into records, `sessions` says which two streams are one connection and
writes their records down for `tshark`, which decrypts them, and `plaintext` finds markers in what they held;
`events` leads. Nothing is decrypted here, and nothing is guessed: what cannot be read is counted, with the
reason, and `unread` says it of a run.
"""
