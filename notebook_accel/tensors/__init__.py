"""Nested structures of tensors: walking them, moving them, exchanging them between ranks."""
