"""Insight into a cluster: events, history, observation, explanation, remedies."""
