"""Predictions against published measurements, and stacks fitted to them."""
