"""Devices that a run can be planned for without having them. Imports no JAX.

v4-8, v5e-8, v5litepod-16, v5p-8, v6e-4    a type of Cloud TPU, by the name under which it is created
2x80GB, 80GB                               so many devices of so much memory
"""

import re
from typing import NamedTuple


class Accelerators(NamedTuple):
    """Devices of one kind."""

    count: int
    kind: str
    bytes: int  # memory of each


_TPU: dict[str, tuple[int, int]] = {
    "v2": (1, 8),
    "v3": (1, 16),
    "v4": (2, 32),
    "v5p": (2, 95),
    "v5e": (1, 16),
    "v5litepod": (1, 16),
    "v6e": (1, 32),
}
"""By generation: what the number in a type counts for each device, and GiB of a device (cloud.google.com/tpu/docs,
system architecture). A v4-8 has four chips of two cores, and JAX shows each chip as one device."""


def parse_devices(word: str) -> Accelerators:
    """Takes a description of devices apart.

    Raises:
      ValueError: it is neither a type of TPU nor a number and a size.
    """
    if match := re.fullmatch(r"(v\d\w*)-([1-9]\d{0,4})", word):
        generation, number = match[1], int(match[2])
        each, gibibytes = _TPU.get(generation, (number + 1, 0))
        if number % each == 0:
            return Accelerators(number // each, f"TPU {generation}", gibibytes * 2**30)
    if match := re.fullmatch(r"(?:([1-9]\d{0,4})x)?([1-9]\d{0,4})GB", word):
        return Accelerators(int(match[1] or 1), f"{match[2]} GB device", int(match[2]) * 10**9)
    raise ValueError(f"--on: got {word!r}, expected a type of TPU ({'-N, '.join(_TPU)}-N), or devices such as 2x80GB")
