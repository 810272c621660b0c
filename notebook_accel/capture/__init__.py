"""What a rank's own code shows (tqdm bars, display(), pyplot figures), turned into events."""
