"""A model's output under other attention: the general way, and faster ones for models that pool."""
