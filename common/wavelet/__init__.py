"""Privelet: range counts under differential privacy by wavelet transforms.

`privelet` turns rows into a `NoisyMatrix`, which answers questions.

[Xiao11] Xiao, Wang, Gehrke: Differential Privacy via Wavelet Transforms, IEEE TKDE 23(8).
"""

from common.wavelet.decisions import WaveletDecisions
from common.wavelet.mechanism import plan_privelet, privelet
from common.wavelet.noisy_matrix import NoisyMatrix, RangeCount, RangeCounts

__all__ = [
    "NoisyMatrix",
    "RangeCount",
    "RangeCounts",
    "WaveletDecisions",
    "plan_privelet",
    "privelet",
]
