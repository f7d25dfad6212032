"""`restacked`, which puts a pile of views back into order by the ids of their sources, and what goes wrong with it."""

import jax.numpy as jnp
import numpy as np

from contrastive_jax.exercises import oracles
from contrastive_jax.exercises.catalogue.parts import FIRST, SECOND, IntegerArray, Rows
from contrastive_jax.exercises.contracts import Case, Contract, Variant


def ids_never_used(pile: Rows, source_ids: IntegerArray) -> Rows:
    """The rows stand as they came: the places decide, not the ids."""
    return jnp.asarray(pile)


def sorted_but_not_stacked(pile: Rows, source_ids: IntegerArray) -> Rows:
    """The rows are in the order of their sources, but interleaved: the halves still have to be pulled apart."""
    return pile[jnp.argsort(source_ids)]


def ranks_for_order(pile: Rows, source_ids: IntegerArray) -> Rows:
    """The inverse order: where each row should go was taken for where each row comes from."""
    return _apart(pile[jnp.argsort(jnp.argsort(source_ids))])


def sources_descending(pile: Rows, source_ids: IntegerArray) -> Rows:
    """The sources descend: as good for the loss, but they were asked for in ascending order."""
    return _apart(pile[jnp.argsort(-source_ids)])


def one_view_of_each_twice(pile: Rows, source_ids: IntegerArray) -> Rows:
    """The first view of each source stands there twice: every pair agrees, and the other view is lost."""
    first = pile[jnp.argsort(source_ids)][0::2]
    return jnp.concatenate([first, first])


def last_come_on_top(pile: Rows, source_ids: IntegerArray) -> Rows:
    """The halves have changed places: of each source the row that came second is on top."""
    interleaved = pile[jnp.argsort(source_ids)]
    return jnp.concatenate([interleaved[1::2], interleaved[0::2]])


def ids_taken_for_places(pile: Rows, source_ids: IntegerArray) -> Rows:
    """The sorted ids picked the rows: an id says whose row it is, not where the row stands."""
    return _apart(jnp.asarray(pile)[jnp.sort(source_ids)])


def rows_sorted_by_value(pile: Rows, source_ids: IntegerArray) -> Rows:
    """The entries of each column were sorted: rows fall apart, and the ids were not asked."""
    return _apart(jnp.sort(jnp.asarray(pile), axis=0))


def _apart(interleaved: Rows) -> Rows:
    return jnp.concatenate([interleaved[0::2], interleaved[1::2]])


def _column(*entries: float) -> np.ndarray:
    return np.array(entries)[:, None]


_IDS = np.array([2, 1, 3, 1, 3, 2], np.int32)
TWO_SOURCES = Case(
    "rows 1 to 4 of one entry, ids 1, 0, 0, 1",
    (_column(1.0, 2.0, 3.0, 4.0), np.array([1, 0, 0, 1], np.int32)),
    _column(2.0, 1.0, 3.0, 4.0),
)
THREE_SOURCES = Case(
    "rows 1 to 6 of one entry, ids 2, 1, 3, 1, 3, 2",
    (_column(1.0, 2.0, 3.0, 4.0, 5.0, 6.0), _IDS),
    _column(2.0, 1.0, 3.0, 4.0, 6.0, 5.0),
)
WIDE = Case("six rows of three entries, ids 2, 1, 3, 1, 3, 2", (np.concatenate([FIRST, SECOND]), _IDS))

CONTRACT = Contract(
    name="restacked",
    parameters=("pile", "source_ids"),
    task="The rows as [view1; view2], sources in ascending order; of each source the row that came first is on top.",
    oracle=oracles.restacked,
    cases=(TWO_SOURCES, THREE_SOURCES, WIDE),
    probes=(WIDE.arguments,),
    variants=(
        Variant(
            ids_never_used,
            THREE_SOURCES,
            THREE_SOURCES.expected,
            _column(1.0, 2.0, 3.0, 4.0, 5.0, 6.0),
            "modelscope/ms-swift#10069",
        ),
        Variant(
            sorted_but_not_stacked,
            THREE_SOURCES,
            THREE_SOURCES.expected,
            _column(2.0, 4.0, 1.0, 6.0, 3.0, 5.0),
            "Spijkervet/SimCLR#30",
        ),
        Variant(ranks_for_order, THREE_SOURCES, THREE_SOURCES.expected, _column(3.0, 5.0, 6.0, 1.0, 2.0, 4.0)),
        Variant(sources_descending, THREE_SOURCES, THREE_SOURCES.expected, _column(3.0, 1.0, 2.0, 5.0, 6.0, 4.0)),
        Variant(last_come_on_top, THREE_SOURCES, THREE_SOURCES.expected, _column(4.0, 6.0, 5.0, 2.0, 1.0, 3.0)),
        Variant(ids_taken_for_places, THREE_SOURCES, THREE_SOURCES.expected, _column(2.0, 3.0, 4.0, 2.0, 3.0, 4.0)),
        Variant(rows_sorted_by_value, THREE_SOURCES, THREE_SOURCES.expected, _column(1.0, 3.0, 5.0, 2.0, 4.0, 6.0)),
        Variant(one_view_of_each_twice, THREE_SOURCES, THREE_SOURCES.expected, _column(2.0, 1.0, 3.0, 2.0, 1.0, 3.0)),
    ),
    common="Sorting the ids and forgetting the rows, or leaving the sorted rows interleaved.",
)
