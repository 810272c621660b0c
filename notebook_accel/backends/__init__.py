"""Everything that differs from one kind of device to the next, one file each."""
