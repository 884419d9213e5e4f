"""Store AWS's own redrives of watched DLQs, when AWS was last asked about them, and the sums of the metrics."""
