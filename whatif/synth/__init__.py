"""A run made of a description: kernels by models, written as Kineto traces."""
