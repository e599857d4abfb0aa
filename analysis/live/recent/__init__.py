"""What messages crossed lately, while the run goes on: from the newest parts of growing captures.

The complete analysis begins at each connection's beginning; here only the last seconds are read, so a look
costs the same however long the run has gone on. Where messages begin in the middle of a stream is found out
(`beginnings`); then everything is decoded and matched as it is in the analysis of the whole run (`looking`).
"""
