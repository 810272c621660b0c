"""Plan, start, supervise: the only layer that sees both the kernel's half and the ranks' half."""
