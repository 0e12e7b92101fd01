"""The exact law of transformers' own decoding code: its two sources of chance are exchanged for choosers that branch.

It draws with `torch.multinomial` and accepts where `torch.rand_like(ratio) <= ratio`. Both branch here over all
that they can give, whole models, caches and processors being the real ones.
"""

from unittest import mock

import torch

from specworkbench.equivalence import enumerate_paths


def law_of(engine, prompt):
    """Output to probability, for an engine of transformers with small models; float32, as its rows are."""
    law = {}
    for output, weight in enumerate_paths(lambda root: _one(engine, prompt, root)):
        law[output] = law.get(output, 0.0) + weight
    return law


def _one(engine, prompt, root):
    def multinomial(probs, num_samples, **_):
        assert num_samples == 1
        return root.draw(probs.double()).unsqueeze(-1)

    def rand_like(ratio, **_):
        accepted = root.accept(ratio.double().flatten())
        return torch.where(accepted, -1.0, 2.0).to(ratio).view_as(ratio)

    with mock.patch("torch.multinomial", multinomial), mock.patch("torch.rand_like", rand_like):
        (output,) = engine.draw(prompt, 1)
    return output
