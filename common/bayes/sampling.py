"""Rows drawn from a network and its conditionals: post-processing, any number of rows is free.

Every conditional distribution becomes an alias table [Walker77, Vose91] of integers, so that a cell
costs one 32-bit random word and one comparison, whatever the size of its domain. Probabilities are
rounded to multiples of 2^-32, a value without probability is never drawn, and a block of rows is
one compiled pass that needs no interpreter: threads with random sources of their own draw at once.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from common.bayes.domain import Domain
from common.bayes.network import Conditional, Network
from common.errors import InputError, LocalError
from common.privacy.randomness import RandomSource, uniforms
from common.schema.codes import (
    CodeColumn,
    Codes,
    bit_positions,
    code_dtype,
    concatenate,
    debinarise,
)
from common.schema.compilation import compiled

_BLOCK_ROWS = 1 << 14  # the columns and random words of a block stay in the second-level cache
_ALIAS_BITS = 16
_MOST_REDRAWS = 50


class Sampler:
    """A network made ready for drawing. It does not change: threads may share it.

    Conditionals are in network order.
    """

    def __init__(
        self, network: Network, domain: Domain, conditionals: Sequence[Conditional]
    ) -> None:
        network.check(domain)
        for pair, table in zip(network.pairs, conditionals, strict=True):
            if table.shape != (int(np.prod(domain.shape(pair.parents))), domain.sizes[pair.child]):
                raise LocalError(
                    f"the conditional of attribute {pair.child} has shape {table.shape}"
                )
        self._sizes = domain.sizes
        tables = [alias_table(table) for table in conditionals]
        views = [view for pair in network.pairs for view in pair.parents]
        maps = [domain.levels[view.attribute][view.level].astype(np.uint16) for view in views]
        self._steps = np.array([pair.child for pair in network.pairs], dtype=np.int64)
        self._bounds = _starts([len(pair.parents) for pair in network.pairs])
        self._parents = np.array([view.attribute for view in views], dtype=np.int64)
        self._groups = np.array([domain.size(view) for view in views], dtype=np.uint32)
        self._map_starts = _starts([len(groups) for groups in maps])
        self._maps = np.concatenate([np.zeros(0, dtype=np.uint16), *maps])
        self._domain_sizes = np.array(domain.sizes, dtype=np.uint64)
        self._table_starts = _starts([thresholds.size for thresholds, _ in tables])
        # Threshold and alias in one word: one look into memory for every cell drawn.
        self._entries = np.concatenate(
            [
                (thresholds.astype(np.uint64) << np.uint64(_ALIAS_BITS)).ravel() | aliases.ravel()
                for thresholds, aliases in tables
            ]
        )
        self._column_type = code_dtype(max(domain.sizes))

    def sample(self, rows: int, source: RandomSource) -> Codes:
        """Draw rows in blocks.

        Variables are drawn in network order [Zhang17, Sec. 3.3], each given the sampled,
        generalised values of its parents.
        """
        if rows < 0:
            raise InputError(f"cannot sample {rows} rows: give 0 or more")
        starts = range(0, max(rows, 1), _BLOCK_ROWS)
        return concatenate([self._block(min(_BLOCK_ROWS, rows - at), source) for at in starts])

    def sample_from_bits(
        self, rows: int, source: RandomSource, sizes: Sequence[int], *, gray: bool = False
    ) -> Codes:
        """Draw rows of attributes, of which the variables are the bits, in plain or Gray code.

        A row with a pattern that stands for no value is drawn again. After 50 redraws in a row only
        the values that do not exist are replaced, uniformly: with hostile noise every redraw could
        fail.
        """
        domains, parts, missing = tuple(sizes), list[Codes](), rows
        for _ in range(1 + _MOST_REDRAWS):
            bits = self.sample(missing, source)
            columns, valid = debinarise(bits, domains, gray=gray)
            parts.append(Codes(columns, domains).take(np.flatnonzero(valid)))
            missing -= parts[-1].rows
            if not missing:
                return concatenate(parts)
        broken = bits.take(np.flatnonzero(~valid))
        return concatenate([*parts, _repaired(broken, domains, source, gray=gray)])

    def _block(self, rows: int, source: RandomSource) -> Codes:
        width = len(self._sizes)
        halves = source.words((width * rows + 1) // 2).view("<u4")
        words = halves[: width * rows].reshape(width, rows)
        columns = np.empty((width, rows), dtype=self._column_type)
        compiled(_draw)(
            words, self._steps, self._bounds, self._parents, self._groups, self._map_starts,
            self._maps, self._domain_sizes, self._table_starts, self._entries, columns,
        )  # fmt: skip
        narrow = (
            columns[a].astype(code_dtype(size), copy=False) for a, size in enumerate(self._sizes)
        )
        return Codes(tuple(narrow), self._sizes)


def _repaired(bits: Codes, sizes: tuple[int, ...], source: RandomSource, *, gray: bool) -> Codes:
    columns = []
    for size, span in zip(sizes, bit_positions(sizes), strict=True):
        (column,), valid = debinarise(bits.select(span), [size], gray=gray)
        instead = (uniforms(bits.rows, source) * size).astype(column.dtype)
        columns.append(np.where(valid, column, instead))
    return Codes.from_columns(columns, sizes)


def _starts(lengths: Sequence[int]) -> NDArray[np.int64]:
    return np.cumsum([0, *lengths], dtype=np.int64)


def alias_table(conditional: Conditional) -> tuple[NDArray[np.uint32], NDArray[np.uint16]]:
    """Return thresholds and aliases of every row of a conditional, in its shape.

    A value's place in its row is chosen uniformly, then the value itself with probability
    threshold / 2^32, and its alias otherwise.
    """
    weights = np.floor(conditional * 2.0**32).astype(np.int64)
    # What rounding down lost goes to the likeliest value, where it is least of a difference.
    likeliest = weights.argmax(axis=1)
    weights[np.arange(len(weights)), likeliest] += (1 << 32) - weights.sum(axis=1)
    if weights.min(initial=0) < 0:
        raise LocalError("a conditional distribution does not add up to one")
    thresholds = np.empty(weights.shape, dtype=np.uint32)
    aliases = np.empty(weights.shape, dtype=np.uint16)
    compiled(_fill_aliases)(weights, thresholds, aliases)
    return thresholds, aliases


def _fill_aliases(
    weights: NDArray[np.int64], thresholds: NDArray[np.uint32], aliases: NDArray[np.uint16]
) -> None:
    """Fill every place that is less than full from one value that has too much [Vose91].

    Exact: in units of 2^-32 / size the weights of a row add up to as many full places as it has.
    """
    count = weights.shape[1]
    full = np.int64(1) << 32
    small = np.empty(count, dtype=np.int64)
    large = np.empty(count, dtype=np.int64)
    for line in range(weights.shape[0]):
        masses = weights[line] * count
        smalls = larges = 0
        for value in range(count):
            if masses[value] < full:
                small[smalls] = value
                smalls += 1
            else:
                large[larges] = value
                larges += 1
        while smalls > 0:
            smalls -= 1
            value, giver = small[smalls], large[larges - 1]
            thresholds[line, value] = masses[value]
            aliases[line, value] = giver
            masses[giver] -= full - masses[value]
            if masses[giver] < full:
                larges -= 1
                small[smalls] = giver
                smalls += 1
        for place in range(larges):  # exactly full: the value itself, whatever the comparison says
            thresholds[line, large[place]] = 0
            aliases[line, large[place]] = large[place]


def _draw(
    words: NDArray[np.uint32],
    steps: NDArray[np.int64],
    bounds: NDArray[np.int64],
    parents: NDArray[np.int64],
    groups: NDArray[np.uint32],
    map_starts: NDArray[np.int64],
    maps: NDArray[np.uint16],
    sizes: NDArray[np.uint64],
    table_starts: NDArray[np.int64],
    entries: NDArray[np.uint64],
    columns: CodeColumn,
) -> None:
    """Fill `columns` (attributes x rows), attribute after attribute in the order of `steps`.

    The parents of step s are at `bounds[s]:bounds[s + 1]` of `parents`, `groups` (how many groups a
    parent's values fall into) and `map_starts` (where the map from value to group begins). Indices
    are unsigned: for signed ones the compiler allows for counting from the end.
    """
    rows = columns.shape[1]
    configuration = np.empty(rows, dtype=np.uint64)
    for step in range(len(steps)):
        child = steps[step]
        configuration[:] = 0
        for place in range(bounds[step], bounds[step + 1]):
            column = columns[parents[place]]
            group_of = maps[map_starts[place] : map_starts[place + 1]]
            count = np.uint64(groups[place])
            for row in range(rows):
                configuration[row] = configuration[row] * count + group_of[column[row]]
        size = sizes[child]
        table = entries[table_starts[step] : table_starts[step + 1]]
        drawn = columns[child]
        word = words[step]
        for row in range(rows):
            # The upper half chooses the place, the lower half is compared with its threshold.
            product = np.uint64(word[row]) * size
            value = product >> np.uint64(32)
            entry = table[configuration[row] * size + value]
            stays = (product & np.uint64(0xFFFFFFFF)) < (entry >> np.uint64(_ALIAS_BITS))
            drawn[row] = value if stays else entry & np.uint64((1 << _ALIAS_BITS) - 1)
