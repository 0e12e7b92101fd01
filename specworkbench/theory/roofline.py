"""The least time a machine needs for a piece of work: it has to read its bytes and to do its operations.

Williams, Waterman, Patterson 2009, "Roofline: An Insightful Visual Performance Model for Multicore Architectures",
Communications of the ACM 52(4): attainable operations per second = min(peak, bandwidth x operations per byte).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from specworkbench.theory.arguments import amount, rate, scalar_or_array


def memory_time(bytes_read: ArrayLike, bandwidth: ArrayLike) -> float | np.ndarray:
    """bytes_read / bandwidth, in seconds where the bandwidth is in bytes per second.

    The floor of a decoding step, which reads all weights and the cache to forward a few rows (Pope et al. 2022,
    "Efficiently Scaling Transformer Inference", arXiv 2211.05102).

    >>> memory_time(2e9, bandwidth=50e9)
    0.04
    """
    return scalar_or_array(amount("bytes_read", bytes_read) / rate("bandwidth", bandwidth))


def arithmetic_time(operations: ArrayLike, peak: ArrayLike) -> float | np.ndarray:
    """operations / peak, in seconds where the peak is in operations per second.

    >>> arithmetic_time(4e9, peak=1e12)
    0.004
    """
    return scalar_or_array(amount("operations", operations) / rate("peak", peak))


def least_time(
    bytes_read: ArrayLike, bandwidth: ArrayLike, operations: ArrayLike, peak: ArrayLike
) -> float | np.ndarray:
    """The greater of `memory_time` and `arithmetic_time`, in seconds: both can go on at once, neither can be left out.

    operations / the roofline of Williams et al. 2009, written as a time.

    >>> least_time(2e9, 50e9, [4e9, 4e11], 1e12)
    array([0.04, 0.4 ])
    """
    return scalar_or_array(np.maximum(memory_time(bytes_read, bandwidth), arithmetic_time(operations, peak)))
