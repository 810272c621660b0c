"""The training kit of a rank: the Accelerator and what it delegates to."""
