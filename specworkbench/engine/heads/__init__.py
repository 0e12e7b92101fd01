"""Heads that draft from the target's own hidden states: EAGLE, MTP, Medusa; their files in the public layouts."""
