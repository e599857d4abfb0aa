"""TLS connections of one host's capture, read with the keys that programs logged.

`records` cuts a reassembled stream into records, `sessions` says which two streams are one connection and
writes their records down for `tshark`, which decrypts them, and `events` finds markers in what they held.
Nothing is decrypted here, and nothing is guessed: what cannot be read is counted, with the reason (`unread`).
"""
