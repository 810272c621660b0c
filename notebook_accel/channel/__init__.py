"""The one channel between a rank and the kernel: a Unix socket that carries lines of JSON."""
