"""Task graph -> schedule: one compiled pass in topological order."""
