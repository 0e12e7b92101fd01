"""Draft heads: small modules that guess from the target's hidden states, in the layouts they are published in."""
