"""azjax: AlphaZero-style agents for two-player perfect-information games inside compiled JAX programs."""

__version__ = "0.1.0"
