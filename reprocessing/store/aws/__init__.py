"""Store AWS's own redrives of watched DLQs, and the sums of the service's metrics."""
