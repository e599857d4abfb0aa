"""Steps from messages and deliveries to events, timelines and verdicts; `analysis.pipeline` calls them in
order.
"""
