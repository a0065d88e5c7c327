"""The same formulas on floats, open grids and symbols."""
