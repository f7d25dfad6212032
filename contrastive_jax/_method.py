"""Which form of a loss computes it: all scores at once, or tile by tile."""

from contrastive_jax._validation import error_text

METHODS = ("auto", "dense", "tiled")
# Up to here all scores at once are as fast, or nearly; from here on they take a multiple of the time and memory.
LARGEST_DENSE = 1024


def use_tiles(method: object, rows: int) -> bool:
    """Whether scores of that many rows are made tile by tile; raises ValueError for a method that does not exist."""
    if not isinstance(method, str) or method not in METHODS:
        raise ValueError(
            error_text(
                "method",
                expected='"auto", "dense" or "tiled"',
                found=repr(method),
                next_step='leave it out: "auto" takes the faster form for the size of the batch.',
            )
        )
    return method == "tiled" or (method == "auto" and rows > LARGEST_DENSE)
