"""The table and the picture of benchmarks/losses.py."""

import math
import os
import platform
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path

NAMES = {
    "auto": 'this library, `method="auto"`',
    "tiled": 'this library, `method="tiled"`',
    "dense": 'this library, `method="dense"`',
    "optax": "optax.losses.ntxent",
    "eager": "PyTorch",
    "compiled": "PyTorch, torch.compile",
    "lightly": "lightly",
    "pytorch-metric-learning": "pytorch-metric-learning",
    "open_clip": "open_clip",
}
TITLES = {"nt_xent": "NT-Xent", "paired": "Paired"}
TORCH_PACKAGES = ("torch", "lightly", "pytorch-metric-learning", "open_clip_torch")


def text(tables: dict, ladder: dict, width: int, torch: str | None, rounds: int) -> str:
    """The whole page, Markdown."""
    lines = [
        "# Losses beside other libraries",
        "",
        f"Written by `make bench`. Value and gradients, float32, rows {width} wide, temperature 0.2.",
        machine(torch),
        "",
        *summary(tables, width),
        "",
        f"Contestants of a size took turns, in processes of their own; medians of {rounds} rounds, {3 * rounds} below",
        "1024 pairs, 3 above 8192. *Rise*: how far a run lifted the memory of its process; 0 where what the run before",
        "had freed was enough. *Temporaries*: by XLA's own analysis.",
        "Out of memory: more than 12 GB beyond what the libraries take when loaded.",
        "",
        "The floor is the time of the arithmetic alone, measured in the same rounds: 4 products of",
        "pairs x pairs x width for the paired loss, 2 of (2 pairs) x (2 pairs) x width for NT-Xent, at the rate of one",
        "product of 4096 x 4096 matrices, and an exponential per score and pass, at the rate of those in the cache.",
        "",
    ]
    for (loss, pairs), results in tables.items():
        lines += [f"## {TITLES[loss]}, {pairs} pairs", "", *table(loss, pairs, width, results), ""]
    for loss in TITLES:
        lines += [f"## {TITLES[loss]} from 1024 pairs on", "", *steps(loss, ladder), ""]
    return "\n".join([*lines, "![Time and memory](losses.svg)", ""])


def summary(tables: dict, width: int) -> list[str]:
    """What the largest size of each loss says, a line each."""
    lines = []
    for loss, title in TITLES.items():
        pairs = max(each for of, each in tables if of == loss)
        results = tables[loss, pairs]
        own, peers = results["auto"], [results.get(each) for each in ("dense", "compiled")]
        ratios = [
            f"{own.seconds / peer.seconds:.2f} of the time of {name}"
            for peer, name in zip(peers, ("the dense form", "torch.compile"), strict=True)
            if peer and not peer.failed
        ]
        of_floor = f"{own.seconds / floor(loss, pairs, width, results):.2f} times the floor"
        memory = f"{held(own)} MB of temporaries instead of the dense form's {held(results['dense'])}"
        lines.append(f"- {title}, {pairs} pairs: {', '.join([*ratios, of_floor, memory])}.")
    return lines


def machine(torch: str | None) -> str:
    model = next(
        (line.split(":")[1].strip() for line in Path("/proc/cpuinfo").read_text().splitlines() if "model name" in line),
        platform.machine(),
    )
    versions = ", ".join(f"{name} {version(name)}" for name in ("jax", "jaxlib", "optax"))
    if torch:
        code = f"from importlib.metadata import version\nfor each in {TORCH_PACKAGES!r}: print(each, version(each))"
        said = subprocess.run([torch, "-c", code], capture_output=True, text=True, check=True).stdout
        versions = ", ".join([versions, *said.splitlines()])
    cores = len(os.sched_getaffinity(0))
    return f"{cores} cores of {model}, {platform.system()}, Python {platform.python_version()}, {versions}."


def floor(loss: str, pairs: int, width: int, results: dict) -> float:
    """Seconds of the products and exponentials that the tiled form cannot do without."""
    rate = {form: results[form].seconds / results[form].operations for form in ("products", "exponentials")}
    scores = (2 * pairs) ** 2 if loss == "nt_xent" else pairs**2
    # NT-Xent computes half of its scores, in two passes, and two products of half of them; the paired loss all.
    operations = (4 if loss == "nt_xent" else 8) * scores * width
    exponentials = scores if loss == "nt_xent" else 2 * scores
    return operations * rate["products"] + exponentials * rate["exponentials"]


def table(loss: str, pairs: int, width: int, results: dict) -> list[str]:
    least = floor(loss, pairs, width, results)
    own = results["auto"].seconds
    lines = ["| | ms | times `auto` | times the floor | rise, MB | temporaries, MB |", "|---|---|---|---|---|---|"]
    for form, name in NAMES.items():
        result = results.get(form)
        if result is None:
            continue
        if result.failed:
            lines.append(f"| {name} | {result.failed} | – | – | – | – |")
            continue
        ratios = f"{plain(result.seconds / own)} | {plain(result.seconds / least)}"
        lines.append(
            f"| {name} | {milliseconds(result.seconds)} | {ratios} | {megabytes(result.rise)} | {held(result)} |"
        )
    return [*lines, f"| floor | {milliseconds(least)} | {plain(least / own)} | 1 | – | – |"]


def steps(loss: str, ladder: dict) -> list[str]:
    lines = ["| pairs | tiled, s | rise, MB | temporaries, MB | dense, s | rise, MB |", "|---|---|---|---|---|---|"]
    for (of, pairs), results in ladder.items():
        if of == loss:
            cells = [cell for form in ("tiled", "dense") for cell in times_and_memory(results[form])]
            cells.insert(2, held(results["tiled"]))
            lines.append(f"| {pairs} | {' | '.join(cells)} |")
    return lines


def times_and_memory(result) -> tuple[str, str]:
    return (result.failed, "–") if result.failed else (plain(result.seconds), megabytes(result.rise))


def milliseconds(seconds: float) -> str:
    return plain(1000 * seconds)


def plain(number: float) -> str:
    """Three digits, without an exponent."""
    return f"{number:.0f}" if number >= 100 else f"{number:.3g}"


def megabytes(count: float) -> str:
    return f"{count / 1e6:.0f}"


def held(result) -> str:
    return "–" if result.temporaries is None else f"{result.temporaries / 1e6:.1f}"


def draw(ladder: dict, path: Path) -> None:
    """Time and temporaries over the number of pairs, with lines of the slopes that are expected."""
    import matplotlib

    matplotlib.use("svg")
    matplotlib.rcParams["svg.hashsalt"] = "losses"
    from matplotlib import pyplot as plt

    figure, (time_axes, memory_axes) = plt.subplots(1, 2, figsize=(9, 4), constrained_layout=True)
    for loss, colour in (("nt_xent", "tab:blue"), ("paired", "tab:orange")):
        for form, style in (("tiled", "o-"), ("dense", "s--")):
            found = {pairs: r[form] for (of, pairs), r in ladder.items() if of == loss and not r[form].failed}
            label = f"{TITLES[loss]}, {form}"
            time_axes.plot(list(found), [r.seconds for r in found.values()], style, color=colour, label=label)
            memory_axes.plot(
                list(found), [r.temporaries / 1e6 for r in found.values()], style, color=colour, label=label
            )
    for axes, power, title in ((time_axes, 2, "Seconds"), (memory_axes, 1, "Temporaries, MB")):
        guide(axes, ladder, power)
        axes.set(xscale="log", yscale="log", xlabel="Pairs", title=f"{title}, value and gradients")
        ticks = sorted({pairs for _, pairs in ladder})
        axes.set_xticks(ticks, [str(each) for each in ticks])
        axes.minorticks_off()
        axes.legend(fontsize="small")
    figure.savefig(path, metadata={"Date": None})
    plt.close(figure)


def guide(axes, ladder: dict, power: int) -> None:
    """A thin line of that power through the last point of NT-Xent over tiles."""
    pairs = sorted({each for of, each in ladder if of == "nt_xent"})
    last = ladder["nt_xent", pairs[-1]]["tiled"]
    if last.failed:
        return
    end = last.seconds if power == 2 else last.temporaries / 1e6
    heights = [end * math.pow(each / pairs[-1], power) for each in pairs]
    axes.plot(pairs, heights, ":", color="grey", label="pairs²" if power == 2 else "pairs")


if __name__ == "__main__":
    sys.exit("This is part of benchmarks/losses.py.")
