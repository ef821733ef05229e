"""Whether each comparator does what its authors report."""
