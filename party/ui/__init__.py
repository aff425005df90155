"""A page for the data owner, on the owner's own machine: review, decide, and see what left."""
