"""The CRC-32 of two parts, from the CRCs of each: so that bytes are read once, although they count twice.

Appending n zero bytes to a message multiplies its CRC, as a polynomial over GF(2), by x to the power 8n; the
CRC of the second part is then added. As `crc32_combine` of zlib, which Python does not offer. Bits are
reflected, as in all of CRC-32: the highest one is x to the power 0.
"""

from functools import lru_cache

POLYNOMIAL = 0xEDB88320
ONE = 1 << 31  # x to the power 0
LENGTH_BITS = 64  # of the longest part


def joined_crc(first: int, second: int, second_bytes: int) -> int:
    """CRC-32 of a first part followed by a second one of `second_bytes`, from the CRC-32 of each."""
    return _product(_shift(second_bytes), first) ^ second


def _product(one: int, other: int) -> int:
    """Of two polynomials, modulo CRC-32's."""
    product, power = 0, ONE
    while power:
        if one & power:
            product ^= other
        other = other >> 1 ^ POLYNOMIAL if other & 1 else other >> 1
        power >>= 1
    return product


def _make_squares() -> tuple[int, ...]:
    squares = [ONE >> 8]  # x to the power 8, 16, 32, …
    while len(squares) < LENGTH_BITS:
        squares.append(_product(squares[-1], squares[-1]))
    return tuple(squares)


_SQUARES = _make_squares()


@lru_cache(maxsize=256)
def _shift(length: int) -> int:
    """x to the power 8 * length."""
    power, at = ONE, 0
    while length:
        if length & 1:
            power = _product(_SQUARES[at], power)
        length, at = length >> 1, at + 1
    return power
