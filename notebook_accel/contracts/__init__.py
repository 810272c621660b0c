"""The words every layer shares: errors, world, events, plan, settings. Standard library only."""
