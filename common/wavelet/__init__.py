"""Privelet: range counts under differential privacy by wavelet transforms.

`privelet` turns rows into a `RangeRelease`, which answers questions.

[Xiao11] Xiao, Wang, Gehrke: Differential Privacy via Wavelet Transforms, IEEE TKDE 23(8).
"""

from common.wavelet.decisions import Plan
from common.wavelet.mechanism import plan_privelet, privelet
from common.wavelet.noisy_matrix import RangeCount, RangeCounts, RangeRelease

__all__ = [
    "Plan",
    "RangeCount",
    "RangeCounts",
    "RangeRelease",
    "plan_privelet",
    "privelet",
]
