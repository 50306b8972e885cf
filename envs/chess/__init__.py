"""Chess: `position.py` to `pgn.py` for one position on the host, the others for batches of positions on devices.

Importing this package imports no JAX.
"""
