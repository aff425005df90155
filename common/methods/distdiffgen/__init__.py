"""DistDiffGen: two owners publish one table for one classification task [Alhadidi12].

Every attribute but the target starts as one group of all its values. A number of times the group
whose division tells most about the target is replaced by its children in the attribute's hierarchy.
Then the rows in every combination of groups and target values are counted under noise, once, and
synthetic rows are drawn from those counts: uniformly within a group.

`divisions` says how a division is chosen, on both owners' rows together in a two-party computation
as in the paper, or by the owners in turn; docs/papers.md lists what differs from the paper.

[Alhadidi12] Alhadidi, Mohammed, Fung, Debbabi: Secure distributed framework for achieving
epsilon-differential privacy, PETS 2012; after Mohammed, Chen, Fung, Yu: Differentially private data
release for data mining, KDD 2011 (DiffGen).
"""

from common.methods.distdiffgen.script import METHOD

__all__ = ["METHOD"]
