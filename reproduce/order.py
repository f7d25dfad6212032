"""Which entries of a record stand in another place than expected, and as few of them as can be."""

import bisect


def out_of_place(expected: list[str], found: list[str]) -> dict[str, tuple[int, int]]:
    """Names of both lists that must move to bring the others into the expected order, with their places in both.

    >>> out_of_place(["a", "b", "c", "d"], ["b", "c", "d", "a"])
    {'a': (0, 3)}
    """
    here = {name: place for place, name in enumerate(expected)}
    there = {name: place for place, name in enumerate(found)}
    common = [name for name in expected if name in there]
    staying = {common[index] for index in _longest_rise([there[name] for name in common])}
    return {name: (here[name], there[name]) for name in common if name not in staying}


def _longest_rise(numbers: list[int]) -> list[int]:
    """Places of the longest part of `numbers` that rises, by patience sorting."""
    # For each length the smallest number that a rise of this length ends in, its place, and each place's forerunner.
    ends: list[int] = []
    places: list[int] = []
    before: list[int] = []
    for index, number in enumerate(numbers):
        length = bisect.bisect_left(ends, number)
        before.append(places[length - 1] if length else -1)
        if length == len(ends):
            ends.append(number)
            places.append(index)
        else:
            ends[length], places[length] = number, index
    rise, index = [], places[-1] if places else -1
    while index >= 0:
        rise.append(index)
        index = before[index]
    return rise
