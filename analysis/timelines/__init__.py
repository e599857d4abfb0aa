"""From messages and deliveries to events, timelines and verdicts; `analysis.pipeline` calls the steps in
order.
"""
