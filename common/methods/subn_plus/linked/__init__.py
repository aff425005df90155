"""People and their events: the sums that subn+ asks for, and the model that it fits to them."""
