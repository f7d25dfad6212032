"""The shapes training in PyTorch: for its time, and for how often its claims hold.

    python benchmarks/shapes_training_torch.py --seeds 16 --steps 300        # one line per seed and objective
    python benchmarks/shapes_training_torch.py --seeds 2 --steps 30 --time   # wall seconds, CPU seconds, version

Needs torch, which the project itself does not.
"""

import argparse
import math
import time

import torch
from torch import nn
from torch.nn import functional


def draw_pictures(count, generator):
    kind = torch.randint(3, (count, 1, 1), generator=generator)
    corner = torch.randint(2, 10, (2, count, 1, 1), generator=generator)
    down = torch.arange(16).reshape(1, 16, 1) - corner[0]
    right = torch.arange(16).reshape(1, 1, 16) - corner[1]
    in_rows, in_columns = (down >= 0) & (down < 6), (right >= 0) & (right < 6)
    bar, column, diagonal = (down == 0) & in_columns, (right == 0) & in_rows, (down == right) & in_rows
    return torch.where(kind == 0, bar, torch.where(kind == 1, column, diagonal)).to(torch.get_default_dtype())


def draw_views(images, generator):
    count = len(images)
    places = torch.arange(16)[None] - torch.randint(-3, 4, (2, count, 1), generator=generator)
    rows, columns = (places % 16).unbind()
    moved = images[torch.arange(count).reshape(-1, 1, 1), rows[:, :, None], columns[:, None, :]]
    brightness = 0.5 + torch.rand(count, 1, 1, generator=generator)
    return moved * brightness + 0.15 * torch.randn(moved.shape, generator=generator)


def build_encoder():
    body = nn.Sequential(
        *[nn.Conv2d(1, 16, 3, 2, 1), nn.ReLU(), nn.Conv2d(16, 32, 3, 2, 1), nn.ReLU()],
        *[nn.AdaptiveAvgPool2d(1), nn.Flatten()],
    )
    return nn.ModuleList([body, nn.Sequential(nn.Linear(32, 32), nn.ReLU(), nn.Linear(32, 16))])


def positive_only(z):
    return -functional.cosine_similarity(*z.chunk(2)).mean()


def nt_xent(z):
    unit, count = functional.normalize(z), len(z)
    scores = (unit @ unit.T / 0.5).masked_fill(torch.eye(count, dtype=torch.bool), -math.inf)
    return functional.cross_entropy(scores, torch.arange(count).roll(count // 2))


@torch.no_grad()
def judge(encoder, images):
    features = encoder[0](images[:, None])
    unit, count = functional.normalize(encoder[1](features)), len(images)
    return features.std(0).mean().item(), ((unit.sum(0) ** 2).sum().item() - count) / (count * (count - 1))


def train(seed, steps, objective):
    torch.manual_seed(seed)
    generator = torch.Generator().manual_seed(seed)
    encoder = build_encoder()
    adam = torch.optim.Adam(encoder.parameters(), lr=3e-3)
    images = draw_pictures(300, torch.Generator().manual_seed(1_000_000 + seed))
    before, loss = judge(encoder, images), None
    for _ in range(steps):
        pictures = draw_pictures(64, generator)
        views = torch.cat([draw_views(pictures, generator), draw_views(pictures, generator)])
        loss = objective(encoder[1](encoder[0](views[:, None])))
        adam.zero_grad()
        loss.backward()
        adam.step()
    return before, judge(encoder, images), loss.item()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=16)
    parser.add_argument("--steps", type=int, default=300)
    parser.add_argument("--dtype", choices=["float32", "float64"], default="float32")
    parser.add_argument("--time", action="store_true", help="print the time alone")
    options = parser.parse_args()
    torch.set_num_threads(1)  # arrays are so small that two threads mostly wait for each other
    torch.set_default_dtype(getattr(torch, options.dtype))
    if options.time:
        train(0, 2, nt_xent)  # the first steps of a process are slow
    wall, cpu = time.perf_counter(), time.process_time()
    for objective in (positive_only, nt_xent):
        for seed in range(options.seeds):
            before, after, loss = train(seed, options.steps, objective)
            if not options.time:
                print(
                    f"{objective.__name__:13} seed {seed:2}: spread {before[0]:.4f} -> {after[0]:.4f}, "
                    f"cosine {before[1]:.4f} -> {after[1]:.4f}, loss {loss:.3f}",
                    flush=True,
                )
    if options.time:
        print(time.perf_counter() - wall, time.process_time() - cpu, torch.__version__)


if __name__ == "__main__":
    main()
