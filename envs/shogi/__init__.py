"""Shogi as the AlphaZero paper played it. `game.Shogi` is the game; `position`, `sfen`, `usi` and `kif` need no JAX."""
