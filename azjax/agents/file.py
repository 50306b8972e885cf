"""A network as a file: its variables with the configuration that they belong to, in safetensors. Imports no JAX.

    NAME.safetensors   tensors by their path, such as "params/Dense_0/kernel" float32[294, 128]
                       metadata "azjax_agent": one JSON object (of several words safetensors keeps no order, and
                       the same agent would have another hash each time): "format", "config" a run's config.json,
                       "step", and "about": how it was made and what was measured

Such a file may be a stranger's. Nothing in it is run, and no memory is taken for a tensor before its name, shape and
type were found to be what the configuration makes (azjax/agents/load.py) and its size that of the file.
"""

import dataclasses
import json
import os
from pathlib import Path
from typing import Any

from safetensors import SafetensorError, safe_open

from azjax.config import RunConfig, from_json

FORMAT = 1
METADATA = "azjax_agent"
SUFFIX = ".safetensors"
DTYPES = {"F32": "float32", "F16": "float16", "I32": "int32"}
"""Types of tensors, by safetensors' word; others are refused."""
MOST_HEADER = 2**20
MOST_TENSORS = 4096


@dataclasses.dataclass(frozen=True, kw_only=True)
class AgentHeader:
    """What a file says before its tensors."""

    path: Path
    config: RunConfig
    step: int
    about: dict[str, Any]
    tensors: dict[str, tuple[str, tuple[int, ...]]]  # name -> numpy's type, shape


def read_header(path: Path) -> AgentHeader:
    """Reads all but the tensors.

    Raises:
      ValueError: one line: it is not an agent's file, or one that contradicts itself.
      OSError: the file cannot be read.
    """
    _check_length(path)
    try:
        with safe_open(path, framework="numpy") as file:
            metadata = file.metadata() or {}
            names = list(file.keys())
            slices = {name: file.get_slice(name) for name in names[:MOST_TENSORS]}
            tensors = {name: (str(part.get_dtype()), tuple(part.get_shape())) for name, part in slices.items()}
    except SafetensorError as error:
        raise ValueError(f"agent: {path} is not a safetensors file ({error})") from None
    if len(names) > MOST_TENSORS:
        raise ValueError(f"agent: {path} has {len(names)} tensors, expected {MOST_TENSORS} at most")
    if strange := [name for name, (dtype, _) in tensors.items() if dtype not in DTYPES]:
        raise ValueError(
            f"agent: {path}: {strange[0]} is of type {tensors[strange[0]][0]}, expected {' '.join(DTYPES)}"
        )
    try:
        fields = json.loads(metadata[METADATA])
        if fields["format"] != FORMAT:
            raise ValueError(f"format {str(fields['format'])[:20]}, expected {FORMAT}: use the azjax that wrote it")
        config, step, about = from_json(fields["config"]), fields["step"], fields["about"]
        if type(step) is not int or step < 0 or not isinstance(about, dict):
            raise ValueError("step or about is not what it should be")
    except (KeyError, TypeError, ValueError, RecursionError) as error:
        what = f"no {error}" if isinstance(error, KeyError) else str(error)
        raise ValueError(f"agent: {path}: its metadata is not what azjax export writes: {what[:300]}") from None
    shapes = {name: (DTYPES[dtype], shape) for name, (dtype, shape) in tensors.items()}
    return AgentHeader(path=path, config=config, step=step, about=about, tensors=shapes)


def _check_length(path: Path) -> None:
    """Raises ValueError if the file's first number, its header's length, is not one that a network's file has."""
    with path.open("rb") as file:
        size, length = os.fstat(file.fileno()).st_size, int.from_bytes(file.read(8), "little")
    if size < 8 or not 0 < length <= min(MOST_HEADER, size - 8):
        raise ValueError(
            f"agent: {path} is not a safetensors file (a header of {length} bytes in a file of {size}), "
            "expected one that azjax export wrote"
        )
