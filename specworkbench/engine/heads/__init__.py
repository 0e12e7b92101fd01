"""Heads that draft from the target's own hidden states: EAGLE, MTP, Medusa, DFlash; their files in public layouts."""
