"""What can be said about a cluster: events, history, observation, explanation, remedies."""
