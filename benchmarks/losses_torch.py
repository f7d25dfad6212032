"""One PyTorch contestant of benchmarks/losses.py: python benchmarks/losses_torch.py FORM LOSS PAIRS WIDTH"""

import sys

import torch
from losses_worker import bound_memory, serve
from torch.nn.functional import cross_entropy, normalize

TEMPERATURE = 0.2


def plain(loss: str):
    """As one would write it: all scores at once, and the library's cross-entropy."""

    def nt_xent(a, b, t):
        z = normalize(torch.cat([a, b]))
        scores = z @ z.T / t
        scores = scores.masked_fill(torch.eye(len(z), dtype=torch.bool), float("-inf"))
        return cross_entropy(scores, torch.arange(len(z)).roll(len(a)))

    def paired(a, b, t):
        scores = normalize(a) @ normalize(b).T / t
        partner = torch.arange(len(a))
        return (cross_entropy(scores, partner) + cross_entropy(scores.T, partner)) / 2

    return {"nt_xent": nt_xent, "paired": paired}[loss]


def of_library(form: str, loss: str):
    """Loss of both views and the temperature; lightly and pytorch-metric-learning have no gradient by that."""
    if form == "eager":
        return plain(loss)
    if form == "compiled":
        return torch.compile(plain(loss))
    if form == "lightly":
        from lightly.loss import NTXentLoss

        criterion = NTXentLoss(temperature=TEMPERATURE)
        return lambda a, b, t: criterion(a, b)
    if form == "pytorch-metric-learning":
        from pytorch_metric_learning.losses import NTXentLoss

        criterion = NTXentLoss(temperature=TEMPERATURE)

        def by_labels(a, b, t):
            labels = torch.arange(len(a)).repeat(2)
            return criterion(torch.cat([a, b]), labels)

        return by_labels
    from open_clip.loss import ClipLoss

    criterion = ClipLoss()
    return lambda a, b, t: criterion(normalize(a), normalize(b), 1 / t)


if __name__ == "__main__":
    form, loss, pairs, width = sys.argv[1:]
    function = of_library(form, loss)
    generator = torch.Generator().manual_seed(0)
    views = [torch.randn(int(pairs), int(width), generator=generator, requires_grad=True) for _ in range(2)]
    temperature = torch.tensor(TEMPERATURE, requires_grad=True)
    inputs = [*views, temperature]

    def run():
        return torch.autograd.grad(function(*inputs), inputs, allow_unused=True)

    bound_memory()
    serve(run)
