"""Every legal layout and batch, the constraints on them, and what is best."""
