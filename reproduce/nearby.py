"""The largest of a number's neighbours, for every number of a list at once, in time that grows with its length."""

from collections import deque
from collections.abc import Iterator, Sequence


def reach(count: int) -> int:
    """How many places to either side count as near, in a list of `count` numbers."""
    return max(2, count // 20)


def largest(values: Sequence[float]) -> list[float]:
    """For each place the largest value no further away than `reach`.

    >>> largest([0.0, 0.0, 5.0, 0.0, 0.0, 0.0])
    [5.0, 5.0, 5.0, 5.0, 5.0, 0.0]
    """
    return list(_largest(values, reach(len(values))))


def _largest(values: Sequence[float], far: int) -> Iterator[float]:
    # Places whose value may yet be the largest, from the largest value down: each goes in once and out once.
    waiting: deque[int] = deque()
    entering = 0
    for place in range(len(values)):
        while entering < min(len(values), place + far + 1):
            while waiting and values[waiting[-1]] <= values[entering]:
                waiting.pop()
            waiting.append(entering)
            entering += 1
        if waiting[0] < place - far:
            waiting.popleft()
        yield values[waiting[0]]
