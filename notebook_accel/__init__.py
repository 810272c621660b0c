"""Train any PyTorch function on every accelerator of the machine from one notebook cell, and watch it live."""
