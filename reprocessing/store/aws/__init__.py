"""Store the redrives that AWS itself does of watched DLQs, and the sums of the metrics."""
