"""The store in the shapes of other libraries."""
