"""Who shares a mask with whom: enough partners that no coalition can take a party's masks off.

With a mask for every pair of K parties a party's work grows with K. Fewer pairs do, if whatever the
colluders leave behind still hangs together.

**What is needed.** Let a graph have a mask on every edge: uniform in the integers modulo M,
independent of the others, added by one end and subtracted by the other. Colluders know the masks of
all edges they touch. *If the graph without them is connected, the others' masked vectors are
uniform among all vectors with the same total:* nothing but the total can be learnt.
Proof. Take a spanning tree of the honest parties and fix the masks of all other edges. Cut
off a leaf of the tree: the leaf's vector is shifted by its tree edge's mask, which nothing else at
the leaf depends on, so it is uniform whatever the rest is; its parent's vector is shifted by the
negative, and the rest is a smaller tree. At the root nothing is free: what it holds is the total
less the others. (It holds modulo any M: a tree's incidence matrix has a unit in every leaf.)

**What is taken.** The parties stand in a circle, in the order of the plan, and share a mask with
the h next ones on either side. *Without any 2h - 1 of them, the rest is connected.* Proof. Take
two parties that are left. The circle has two arcs between them, and in one of the arcs at most
h - 1 parties are missing. So along this arc whoever is left has the next one that is left within h
places, hence as a partner. (This is Harary's graph of connectivity 2h, with the least edges.)

2h is the larger of t + 1, for the t colluders of the study, and 32, rounded up to an even number.
So up to 33 parties everybody shares a mask with everybody, and no coalition learns more than the
others' total; beyond that, none of up to max(t, 31) parties does, certainly, not just probably.
Unlike random graphs [Bell20] it needs no assumption about how colluders are spread: they may stand
where they like. A party's work does not depend on K.

Where d parties may go missing, h is at least 2 (t + d) + 1: see `recovery`, whose proof needs it.
"""

from __future__ import annotations

from common.errors import LocalError

LEAST_CONNECTIVITY = 32
"""So many parties must collude to single anybody out, even in a study that names fewer colluders.

32 masks cost a party a quarter of a microsecond a cell, however many parties there are.
"""


def partners(place: int, *, parties: int, colluders: int, may_miss: int = 0) -> list[int]:
    """Return the places with which the party at `place` shares a mask, ascending.

    Args:
        place: of the party, 0 to parties - 1.
        parties: how many there are in the sum.
        colluders: up to how many of them may pool what they know, the curator included beside them.
        may_miss: up to how many of them may go missing during the sum.
    """
    if not 0 <= place < parties:
        raise LocalError(f"a sum of {parties} parties has no place {place}")
    reach = (max(colluders + 1, LEAST_CONNECTIVITY) + 1) // 2
    if may_miss:
        reach = max(reach, 2 * (colluders + may_miss) + 1)
    if 2 * reach + 1 >= parties:
        return [other for other in range(parties) if other != place]
    return sorted((place + step) % parties for step in range(-reach, reach + 1) if step)
