"""Checkpoints that are whole or do not count: written by Orbax, acknowledged by a manifest of hashes.

    checkpoints/STEP/manifest.json     format, versions, every file's sha256 and size, every leaf's shape and dtype
    checkpoints/STEP/...               what Orbax wrote

Orbax loads a flipped bit or another dtype without a word and never falls back to an older step; the manifest is what
notices. A step is written beside its place as `STEP.new` and renamed to `STEP` when its manifest is inside.

Leaves are stored under the path of their fields, such as `params/torso/kernel`, so that players read the parameters
without knowing the class of the training state. Typed keys are stored as their data. Arrays are not compressed, so
that a manifest that promises more bytes than its files hold is refused before memory is taken.
"""

from azjax.checkpoint.checkpoints import CheckpointError, Checkpoints, Restored

__all__ = ["CheckpointError", "Checkpoints", "Restored"]
