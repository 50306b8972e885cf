"""Agents as files: what `azjax export` writes, and those that come with azjax (the .safetensors files here)."""
