"""Compiled loops for one CPU core. Each has a plain form in torch: the fallback, and the oracle in tests."""

from __future__ import annotations

from typing import Any

import numba
import numpy as np
from numba.extending import intrinsic

# Fused multiply-add is allowed, reassociation is not: the same numbers every time.
_compile = numba.njit(cache=True, fastmath={"contract"}, error_model="numpy")
# Multiplies and adds at once only where `_fma` says so.
_compile_as_written = numba.njit(cache=True, error_model="numpy")


def _multiply_add(context: Any, a: Any, b: Any, c: Any) -> Any:  # noqa: ARG001 - the signature is numba's
    """A * b + c, rounded once; three numbers of one float type."""

    def generate(_: Any, builder: Any, __: Any, numbers: Any) -> Any:
        return builder.fma(*numbers)

    return a(a, a, a), generate


_fma: Any = intrinsic(_multiply_add)


@_compile
def bag_product(columns: Any, values: Any, offsets: Any, weight: Any, out: Any) -> None:
    """Out (n, outputs) = sparse rows (n, width) times weight (width, outputs), all of one float type."""
    width = out.shape[1]
    for i in range(out.shape[0]):
        out[i, :] = 0
        for p in range(offsets[i], offsets[i + 1]):
            value = values[p]
            source = weight[columns[p]]
            for j in range(width):
                out[i, j] += value * source[j]


@_compile
def bag_adadelta(
    columns: Any,
    rows: Any,
    values: Any,
    gradient: Any,
    state: Any,
    step: int,
    settings: Any,
) -> None:
    """Lazy Adadelta of the words that occur, their gradient summed on the way.

    Args:
        columns: (nnz,) int64, sorted: the word of each stored value.
        rows: (nnz,) int64: its example.
        values: (nnz,) of the weight's float type, as is everything below except `last`.
        gradient: (n, outputs), of the product.
        state: weight, squares, deltas (width, outputs), and last step (width,) int64, changed in place.
        step: number of this step, from 1.
        settings: lr, rho, 1 - rho and eps.
    """
    weight, squares, deltas, last = state
    lr, rho, rest, eps = settings
    total = np.empty(weight.shape[1], weight.dtype)
    decays = np.empty(1, weight.dtype)
    p = 0
    while p < len(columns):
        word = columns[p]
        total[:] = 0
        while p < len(columns) and columns[p] == word:
            value = values[p]
            source = gradient[rows[p]]
            for j in range(total.shape[0]):
                total[j] += value * source[j]
            p += 1
        # Through an array, so that the power, taken in float64, comes back in the weight's type.
        decays[0] = np.float64(rho) ** (step - 1 - last[word])
        decay = decays[0]
        last[word] = step
        w, s, d = weight[word], squares[word], deltas[word]
        for j in range(total.shape[0]):
            g = total[j]
            square = s[j] * (decay * rho) + rest * g * g
            before = d[j] * decay
            delta = np.sqrt((before + eps) / (square + eps)) * g
            w[j] -= lr * delta
            s[j] = square
            d[j] = before * rho + rest * delta * delta


@_compile
def adadelta(weight: Any, gradient: Any, squares: Any, deltas: Any, settings: Any) -> None:
    """Adadelta of flat arrays of one float type, changed in place except the gradient; settings as above."""
    lr, rho, rest, eps = settings
    for i in range(weight.shape[0]):
        g = gradient[i]
        square = squares[i] * rho + rest * g * g
        delta = np.sqrt((deltas[i] + eps) / (square + eps)) * g
        weight[i] -= lr * delta
        squares[i] = square
        deltas[i] = deltas[i] * rho + rest * delta * delta


@_compile_as_written
def adam_moments(weight: Any, means: Any, squares: Any, gradient: Any, settings: Any) -> None:
    """First half of Adam, of flat arrays of one float type: `means` and `squares` of the gradients, changed in place.

    It multiplies and adds as torch's loops do, to the last bit on processors that have a fused multiply-add.

    Args:
        weight: (n,) the weights, of which `decay` times is added to the gradient.
        means: (n,) the gradients' exponential moving average.
        squares: (n,) that of their squares.
        gradient: (n,)
        settings: 1 - beta1, beta2, 1 - beta2, and the decay.
    """
    rest, beta, rest_of_squares, decay = settings
    for i in range(weight.shape[0]):
        g = _fma(decay, weight[i], gradient[i])
        means[i] = _fma(rest, g - means[i], means[i])
        squares[i] = _fma(rest_of_squares * g, g, squares[i] * beta)


@_compile_as_written
def adam_update(weight: Any, means: Any, roots: Any, settings: Any) -> None:
    """Second half of Adam: the weights' step, in place.

    Args:
        weight: (n,)
        means: (n,) as above.
        roots: (n,) the square roots of `squares` above, which torch takes by a library that rounds in its own way.
        settings: what weights are multiplied by first, the negative step size, the root of the squares' correction,
            and epsilon.
    """
    kept, size, correction, eps = settings
    for i in range(weight.shape[0]):
        weight[i] = weight[i] * kept + size * means[i] / (roots[i] / correction + eps)


@_compile_as_written
def sgd(weight: Any, moments: Any, gradient: Any, settings: Any, nesterov: Any) -> None:
    """SGD of flat arrays of one float type, with momentum; multiplied and added as torch's loops do, see above.

    Args:
        weight: (n,) changed in place, as are the moments.
        moments: (n,) zero before the first step.
        gradient: (n,)
        settings: negative learning rate, momentum, and weight decay.
        nesterov: bool, whether the step looks ahead by the momentum.
    """
    size, momentum, decay = settings
    for i in range(weight.shape[0]):
        g = _fma(decay, weight[i], gradient[i])
        moments[i] = moments[i] * momentum + g
        step = _fma(momentum, moments[i], g) if nesterov else moments[i]
        weight[i] = _fma(size, step, weight[i])


@numba.njit(inline="always")
def _finalise(h: Any) -> Any:
    # numba widens products of uint32; the casts keep them 32 bits wide, as functional/random.py is.
    h = np.uint32(h ^ np.uint32(h >> np.uint32(16)))
    h = np.uint32(h * np.uint32(0x85EBCA6B))
    h = np.uint32(h ^ np.uint32(h >> np.uint32(13)))
    h = np.uint32(h * np.uint32(0xC2B2AE35))
    return np.uint32(h ^ np.uint32(h >> np.uint32(16)))


@_compile
def dropout(x: Any, high: Any, low: Any, threshold: Any, scale: Any, out: Any) -> None:
    """Out = x * keep_mask * scale for flat float arrays; high and low are the key's halves as uint32."""
    for i in range(x.shape[0]):
        index = np.uint32(i)
        h = _finalise(np.uint32(np.uint32(index * np.uint32(0x9E3779B1)) ^ high))
        h = _finalise(np.uint32(np.uint32(h + index) ^ low))
        out[i] = x[i] * scale * (np.uint32(h & np.uint32(0x7FFFFFFF)) >= threshold)
