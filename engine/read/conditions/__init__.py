"""Conditions on rows as SQL text: the one parser of them, and what they are to Arrow."""
