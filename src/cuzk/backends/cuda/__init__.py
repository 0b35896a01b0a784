"""NVIDIA GPUs as devices that prove."""
