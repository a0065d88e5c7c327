"""Scenarios from cells: tables of deployments, and the single cells and ranges of a worksheet."""
