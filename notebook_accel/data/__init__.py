"""What each rank sees of a data set, and the loader that shows it."""
